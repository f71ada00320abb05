"""What runs on the default branch note of a project for reviews that come later."""
