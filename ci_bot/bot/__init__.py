"""Everything that may hold the token.

No module here imports SQLMesh or the worker; what it knows of a project is the worker's answer."""
