"""Rules that read a change itself: models, files and settings, before and after.

`find` (of a loaded project) and `find_in_files` are the ways in. Many dangers are invisible in
SQLMesh's categories (a password in the configuration, a removed audit, the clock in an incremental
model), so the rules read definitions, syntax trees and text. They judge the change:
what was there before is not held against it.
"""

from __future__ import annotations

from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.run_rules import (find, find_in_files, find_in_statements, find_without_plan)

__all__ = [
    "RuleInputs",
    "find",
    "find_in_files",
    "find_in_statements",
    "find_without_plan",
]
