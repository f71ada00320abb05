"""How things are called and said: models, times, failures."""
