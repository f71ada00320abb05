"""A team's policy: reading, comparing and applying it."""
