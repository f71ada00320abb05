"""What the warehouse's catalogs hold, and of which objects an environment consists there."""
