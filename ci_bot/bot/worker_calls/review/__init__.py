"""A review: the worker's facts, what the bot adds to them, and the report."""
