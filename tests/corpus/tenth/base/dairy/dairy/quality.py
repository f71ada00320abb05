"""The classes of milk."""

# Class and the most cells per millilitre, the best first.
CLASSES = [("S", 200000), ("A", 400000), ("B", 500000)]
