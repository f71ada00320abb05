"""Rules on the files of a change, also where the project does not load; a module that is imported
here takes part."""

from __future__ import annotations

from ci_bot.worker.rules.files import (
    configuration,
    environment,
    ignored,
    lfs,
    macros,
    python,
    python_settings,
    secrets,
    seed_types,
    seed_values,
    seeds,
    starters,
    versions,
)
from ci_bot.worker.rules.files.raw import literal_statements, macro_arguments
from ci_bot.worker.rules.files.unit_tests import comparing
from ci_bot.worker.rules.registry import (
    on_file,
    on_file_and_models,
    on_project,
    on_written_statement,
)

FILE_RULES, MODEL_FILE_RULES = on_file, on_file_and_models
STATEMENT_FILE_RULES, PROJECT_RULES = on_written_statement, on_project

__all__ = [
    "FILE_RULES",
    "MODEL_FILE_RULES",
    "PROJECT_RULES",
    "STATEMENT_FILE_RULES",
    "comparing",
    "configuration",
    "environment",
    "ignored",
    "lfs",
    "literal_statements",
    "macro_arguments",
    "macros",
    "python",
    "python_settings",
    "secrets",
    "seed_types",
    "seed_values",
    "seeds",
    "starters",
    "versions",
]
