"""What counts only as the base commit has it."""
