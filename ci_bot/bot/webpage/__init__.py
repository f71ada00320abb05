"""A report as one HTML file that works from disk: no network, nothing of a project can run in it"""
