"""Whether a project and its surroundings are ready for the other commands."""
