"""Everything that may hold the token.

No module here imports SQLMesh or the worker; it knows a project only by the worker's answer."""
