"""Rules that read a change itself: models, files and settings, before and after.

`find_project_findings` (for a loaded project) and `find_file_findings` run them. SQLMesh's
categories leave many dangers out: a password in the configuration, a removed audit, the clock in an
incremental model. So the rules read definitions, syntax trees and text. They judge only the change:
a fault that was there before is no finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.rules import inputs
    from ci_bot.worker.rules.executions import find_missed_changes, list_executions
    from ci_bot.worker.rules.files.seed_values import SeedRows, compare_seed_rows
    from ci_bot.worker.rules.inputs import RuleInputs, make_base_reader, make_head_reader
    from ci_bot.worker.rules.model_rules import MODEL_RULES
    from ci_bot.worker.rules.models.linter_rule import (
        ModelRule,
        ProjectView,
        find_observation_range,
        make_project_view,
        refuse_policy,
    )
    from ci_bot.worker.rules.observation import NamedModel, RuleObservation
    from ci_bot.worker.rules.run_rules import (
        find_file_findings,
        find_model_file_findings,
        find_project_findings,
        find_statement_findings,
    )
    from ci_bot.worker.rules.two_models import compare_models

__getattr__ = open_on_demand(
    __name__,
    {
        "two_models": ["compare_models"],
        "executions": ["find_missed_changes", "list_executions"],
        "files.seed_values": ["SeedRows", "compare_seed_rows"],
        "inputs": ["RuleInputs", "make_head_reader", "make_base_reader"],
        "model_rules": ["MODEL_RULES"],
        "models.linter_rule": [
            "ModelRule",
            "ProjectView",
            "find_observation_range",
            "refuse_policy",
            "make_project_view",
        ],
        "observation": [
            "NamedModel",
            "RuleObservation",
        ],
        "run_rules": [
            "find_project_findings",
            "find_file_findings",
            "find_statement_findings",
            "find_model_file_findings",
        ],
    },
)
