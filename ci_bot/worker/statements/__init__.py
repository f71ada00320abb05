"""What SQL statements do: read, judged by whom they touch, and refused where that is not theirs.

`reading` and what it uses are pure: text in, effects out. `rendered` and `sites` are the adapter to
SQLMesh: which statements a plan would execute, and what the environment may change.
"""

from __future__ import annotations

from ci_bot.worker.statements.judging import Judged, Statement
from ci_bot.worker.statements.project import check_statements, judge_models, judge_plan

__all__ = ["Judged", "Statement", "check_statements", "judge_models", "judge_plan"]
