"""What the cage must hold against, row by row, and what a review without state must still see."""

from __future__ import annotations
