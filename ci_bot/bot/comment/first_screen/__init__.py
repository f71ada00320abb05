"""What stands above the first fold of a review: the sentence, the fixes, the work, the picture."""
