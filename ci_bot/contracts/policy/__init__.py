"""What a policy says that both processes read."""
