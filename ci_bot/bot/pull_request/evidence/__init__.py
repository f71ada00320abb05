"""What a run publishes of an apply once the data is there."""
