"""Measurements of DESIGN section 8, one script for each."""

from __future__ import annotations
