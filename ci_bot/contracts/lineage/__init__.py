"""What depends on what, as a review tells it"""
