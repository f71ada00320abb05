"""Reading the text of a statement."""
