"""Pairs of queries whose answer Spark gives, and what the product says of them."""
