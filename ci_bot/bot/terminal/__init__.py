"""The commands of a laptop, and their words on a terminal."""
