"""What models that nobody has built yet will cost, by the size of what they will read."""
