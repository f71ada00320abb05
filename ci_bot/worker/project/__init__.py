"""Opening and loading a project, and the checks that need no plan."""
