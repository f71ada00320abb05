"""What a review finds: facts and findings, without changing anything."""
