"""SQLMesh's plan: made, checked against prod, and described in the contracts' words."""
