"""What an apply has really cost, by Spark's own counters."""
