"""Somebody asks what building a pull request's environment will cost."""
