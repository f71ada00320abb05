"""Measurements, one script for each; the README has their figures."""

from __future__ import annotations
