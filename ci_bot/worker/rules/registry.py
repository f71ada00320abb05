"""The worker's rules: each is entered where it is defined, and `run` runs all of them.

`@on_change(SPEC, ...)` on a function says what it is given and which rules it gives. Rules on one
model are classes of SQLMesh's linter, and have `on_model` in `models/base.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ci_bot.protocol.rules import Registry, rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import Pair
from ci_bot.worker.rules.observation import Observation

ChangeRule = Callable[[Pair, RuleInputs], Iterator[Observation]]
NewModelRule = Callable[[Any, RuleInputs], Iterator[Observation]]
ProjectRule = Callable[[RuleInputs], Iterator[Observation]]

on_change: Registry[ChangeRule] = Registry()
"""A model before and after the change."""

on_new_model: Registry[NewModelRule] = Registry()
"""A model that prod does not have."""

on_file: Registry[ProjectRule] = Registry()
"""Both versions of one file and nothing else, so a process that has loaded nothing can run it. It
is run for each file alone: what makes it fail hides no other file."""

on_file_and_models: Registry[ProjectRule] = Registry()
"""Files; it sees more where the models are loaded."""

on_written_statement: Registry[ProjectRule] = Registry()
"""Statements as they stand in files. The plan's judgement of the same statements sees better, if it
can be believed."""

on_statement: Registry[ProjectRule] = Registry()
"""The plan's statements. Its silence would let one through that writes prod."""

on_project: Registry[ProjectRule] = Registry()
"""What only a loaded project has."""

CRASHED = rule("rule-crashed")
