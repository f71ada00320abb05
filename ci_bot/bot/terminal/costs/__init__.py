"""What things cost, at a terminal: learned from prod's runs, and estimated."""
