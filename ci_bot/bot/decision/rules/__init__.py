"""The rules that judge a plan as a whole."""
