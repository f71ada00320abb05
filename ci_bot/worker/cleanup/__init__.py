"""Removing an environment, and the tables that nobody needs any more."""
