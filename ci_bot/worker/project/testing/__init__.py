"""The project's own unit tests: running them, and telling why they fail."""
