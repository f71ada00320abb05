"""The data diff, without Spark."""

from __future__ import annotations
