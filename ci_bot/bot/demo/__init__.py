"""The whole life of one pull request on embedded Spark and state, with real data."""

from __future__ import annotations
