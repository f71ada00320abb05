"""What a review is told: facts and findings, without changing anything."""
