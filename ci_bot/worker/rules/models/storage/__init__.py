"""Rules on how a model is stored."""
