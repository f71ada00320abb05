"""The worker's rules: each is entered where it is defined, and `run` runs all of them.

`@on_change(SPEC, ...)` on a function says what it is given and which rules it gives. Rules on one
model are classes of SQLMesh's linter, and have `on_model` in `models/base.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ci_bot.protocol.rules import RuleRegistry, find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation

ChangeRule = Callable[[ModelPair, RuleInputs], Iterator[RuleObservation]]
NewModelRule = Callable[[Any, RuleInputs], Iterator[RuleObservation]]
ProjectRule = Callable[[RuleInputs], Iterator[RuleObservation]]

on_change: RuleRegistry[ChangeRule] = RuleRegistry()
"""A model before and after the change."""

on_new_model: RuleRegistry[NewModelRule] = RuleRegistry()
"""A model that prod does not have."""

on_file: RuleRegistry[ProjectRule] = RuleRegistry()
"""Both versions of one file and nothing else, so a process that has loaded nothing can run it. It
is run for each file alone: what makes it fail hides no other file."""

on_file_and_models: RuleRegistry[ProjectRule] = RuleRegistry()
"""Files; it sees more where the models are loaded."""

on_written_statement: RuleRegistry[ProjectRule] = RuleRegistry()
"""Statements as they stand in files. The plan's judgement of the same statements sees better, if it
can be trusted."""

on_statement: RuleRegistry[ProjectRule] = RuleRegistry()
"""The plan's statements. Its silence would let one through that writes prod."""

on_project: RuleRegistry[ProjectRule] = RuleRegistry()
"""What only a loaded project has."""

CRASHED = find_rule("rule-crashed")
