"""Rules on the files of a change, also where the project does not load."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_bot.worker.rules.files import configuration, environment, python, secrets, seeds, tests
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.sight import Sight

ProjectRule = Callable[[RuleInputs], Iterator[Sight]]

PROJECT_RULES: tuple[ProjectRule, ...] = (
    configuration.changed,
    configuration.single_writer,
    environment.statements,
    environment.standalone_audits,
    environment.removed_and_read,
    environment.renamed_models,
    python.macros,
    secrets.hard_coded,
    secrets.env_file,
    seeds.readable,
    seeds.contents,
    seeds.keys,
    tests.removed,
    tests.moving_dates,
)
