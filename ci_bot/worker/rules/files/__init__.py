"""Rules on the files of a change, also where the project does not load."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_bot.worker.rules.files import configuration, environment, python, secrets, seeds, starters
from ci_bot.worker.rules.files.raw import literal_statements, raw_sql
from ci_bot.worker.rules.files.unit_tests import comparing
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation

ProjectRule = Callable[[RuleInputs], Iterator[Observation]]

# They read both versions of one file and nothing else, so a process that has loaded nothing can run
# them, and they are run for each file alone: what makes one of them fail hides no other file.
FILE_RULES: tuple[ProjectRule, ...] = (
    configuration.changed,
    configuration.single_writer,
    starters.settings,
    environment.standalone_audits,
    python.macros,
    raw_sql.judged,
    secrets.hard_coded,
    secrets.env_file,
    comparing.moving_dates,
)

# They read files, and see more where the models are loaded.
MODEL_FILE_RULES: tuple[ProjectRule, ...] = (
    seeds.readable,
    seeds.contents,
    seeds.keys,
    comparing.removed,
)

# They read what the plan's judgement of the same statements sees better, if it can be believed.
STATEMENT_FILE_RULES: tuple[ProjectRule, ...] = (literal_statements.written,)

# They read what only a loaded project has.
PROJECT_RULES: tuple[ProjectRule, ...] = (
    configuration.changed_objects,
    environment.statements,
    environment.removed_and_read,
    environment.renamed_models,
)
