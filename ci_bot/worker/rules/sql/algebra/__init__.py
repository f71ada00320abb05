"""Queries as relational algebra, where spelling drops out: what is read, how, what comes out."""
