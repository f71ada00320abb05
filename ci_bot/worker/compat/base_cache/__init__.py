"""Files of models that a run on the default branch has loaded before: found again, and noted."""
