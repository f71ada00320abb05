"""SQL as it stands in files, before anything is rendered."""
