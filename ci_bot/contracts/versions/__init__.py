"""Which versions of others this release works with."""
