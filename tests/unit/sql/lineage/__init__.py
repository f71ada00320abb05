"""Which columns and rows of which models depend on what a change changes."""
