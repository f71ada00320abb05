"""The worker as a process: its request and answer, its signals, its environment."""
