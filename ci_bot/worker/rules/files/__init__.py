"""Rules on the files of a change, also where the project does not load; a module that is imported
here takes part."""

from __future__ import annotations

from ci_bot.worker.rules.files import credentials as secrets
from ci_bot.worker.rules.files import engine_versions as versions
from ci_bot.worker.rules.files import macro_arguments, seed_values, seeds
from ci_bot.worker.rules.files import macro_code as macros
from ci_bot.worker.rules.files import macro_code as python
from ci_bot.worker.rules.files import macro_code as python_settings
from ci_bot.worker.rules.files import program_settings as starters
from ci_bot.worker.rules.files import project_statements as environment
from ci_bot.worker.rules.files import raw_sql as literal_statements
from ci_bot.worker.rules.files import seed_values as seed_types
from ci_bot.worker.rules.files import settings as configuration
from ci_bot.worker.rules.files import unit_tests as comparing
from ci_bot.worker.rules.files import unread_files as ignored
from ci_bot.worker.rules.files import unread_files as lfs
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
