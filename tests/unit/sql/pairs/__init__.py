"""Generated pairs of queries, run on DuckDB: rewrites, and near misses of rewrites."""
