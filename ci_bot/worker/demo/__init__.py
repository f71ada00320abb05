"""Prod of the demo: real data, built by SQLMesh on embedded Spark."""

from __future__ import annotations
