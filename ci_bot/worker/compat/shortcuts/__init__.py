"""Work of SQLMesh that no answer needs, left out."""
