"""A plan in the words of the report."""
