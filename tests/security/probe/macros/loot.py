"""Loaded with the project, like every macro; what it does it does at once."""

from __future__ import annotations

from attack import main
from sqlmesh import macro

main()


@macro()
def loot(evaluator):
    return f"'{evaluator.var('loot')}'"
