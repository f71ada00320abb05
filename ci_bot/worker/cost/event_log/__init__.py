"""Spark's event logs: what prod's own runs have cost, read without a Spark session."""
