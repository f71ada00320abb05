"""Building the reviewed plan, and what shows that it was built."""
