"""The documents: what the worker answers, what lands in files, what the comment remembers."""
