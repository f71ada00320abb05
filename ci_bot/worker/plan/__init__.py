"""SQLMesh's plan as the contracts describe it."""
