"""What an apply has shown, as its readers ask for it: the verdict on the data, in words."""
