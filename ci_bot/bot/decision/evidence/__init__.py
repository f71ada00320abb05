"""What the data of an apply says: findings of its own, what it clears, and the decision with it."""
