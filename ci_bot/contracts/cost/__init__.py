"""What work costs: figures of estimates and of applies, and what event logs have told."""
