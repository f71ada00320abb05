"""Requests to GitHub's API: connection, certificates, retries, failures."""
