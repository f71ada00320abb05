"""`ci-bot learn` at a terminal."""
