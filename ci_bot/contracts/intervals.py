"""How many intervals anybody may ask for. Fast to import."""

from __future__ import annotations

# SQLMesh goes back that many intervals one by one, for every model.
MOST_INTERVALS = 1_000_000
