"""What an apply keeps account of: the batches that it has built, their cost, and what to tell."""
