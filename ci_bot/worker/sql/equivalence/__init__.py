"""Reads a query as blocks, for proof and lineage; proves that two queries give the same rows."""
