"""The catalogs of the warehouse, asked without SQLMesh."""
