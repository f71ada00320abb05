"""Unit tests before and after a change."""
