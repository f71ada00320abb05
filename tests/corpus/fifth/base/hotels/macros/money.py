"""Amounts."""

from __future__ import annotations

from sqlmesh import macro


@macro()
def net(evaluator, amount):
    """The amount without value added tax."""
    return f"({amount}) / 1.10"
