"""What the column impact is asked with, taken from an opened project and its plan."""
