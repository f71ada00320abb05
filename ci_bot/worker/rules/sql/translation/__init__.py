"""From the parser's trees of queries to algebra, with notes on what was not understood."""
