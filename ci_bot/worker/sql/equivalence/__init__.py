"""Whether two queries give the same rows on any data: translated to blocks, compared as keys."""
