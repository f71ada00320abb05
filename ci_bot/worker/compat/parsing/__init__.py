"""What differs between the parsers of SQL that versions of SQLMesh bring."""
