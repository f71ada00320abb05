"""What queries mean: sources, columns, filters, kinds of joins."""
