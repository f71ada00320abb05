"""Versions of SQLMesh against activities: each cell is a run of the tests that hold the activity."""
