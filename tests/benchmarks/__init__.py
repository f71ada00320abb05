"""Measurements, one script for each; docs/numbers.md has their figures."""

from __future__ import annotations
