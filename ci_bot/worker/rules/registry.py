"""The worker's rules: a decorator at its definition registers each rule, and `run_rules` runs them.

`@on_change(SPEC, ...)` on a function says what its arguments are and which rules it implements.
Rules on one model are classes of SQLMesh's linter, with `on_model` in `models/linter_rule.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ci_bot.protocol.rules import RuleRegistry, find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

ChangeRule = Callable[[ModelPair, RuleInputs], Iterator[RuleObservation]]
NewModelRule = Callable[["Model", RuleInputs], Iterator[RuleObservation]]
ProjectRule = Callable[[RuleInputs], Iterator[RuleObservation]]

# A model before and after the change.
on_change: RuleRegistry[ChangeRule] = RuleRegistry()

# A model that prod does not have.
on_new_model: RuleRegistry[NewModelRule] = RuleRegistry()

# Both versions of one file and nothing else, so a process that has loaded nothing can run it. It is
# run for each file alone: if one file makes it fail, the others are still checked.
on_file: RuleRegistry[ProjectRule] = RuleRegistry()

# Files; it finds more if the models are loaded.
on_file_and_models: RuleRegistry[ProjectRule] = RuleRegistry()

# Statements as files contain them. The plan's judgement of the same statements is more exact, if it
# can be trusted.
on_written_statement: RuleRegistry[ProjectRule] = RuleRegistry()

# The plan's statements. If it failed silently, a statement that writes prod could pass.
on_statement: RuleRegistry[ProjectRule] = RuleRegistry()

# Facts that only a loaded project has.
on_project: RuleRegistry[ProjectRule] = RuleRegistry()

CRASHED = find_rule("rule-crashed")
