"""The report as a comment."""
