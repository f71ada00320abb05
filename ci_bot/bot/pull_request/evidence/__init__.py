"""What a run says of an apply at its end, and the decision that its evidence leads to."""
