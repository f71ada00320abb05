"""A sweep: what is found, and what is asked of the worker."""
