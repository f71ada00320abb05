"""The documents of the product: what the worker tells, and what is kept and shown."""
