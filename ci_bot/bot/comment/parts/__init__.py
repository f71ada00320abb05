"""The parts of a comment, and how many bytes each may take."""
