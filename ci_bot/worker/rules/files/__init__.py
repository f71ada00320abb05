"""Rules on the files of a change, also where the project does not load; a module that is imported
here takes part."""

from __future__ import annotations

from ci_bot.worker.rules.files import (settings as configuration, project_statements as environment, unread_files as ignored, unread_files as lfs, macro_code as macros, macro_code as python, macro_code as python_settings, credentials as secrets, seed_values as seed_types, seed_values, seeds, program_settings as starters, engine_versions as versions)
from ci_bot.worker.rules.files import (raw_sql as literal_statements, macro_arguments)
from ci_bot.worker.rules.files import unit_tests as comparing
from ci_bot.worker.rules.registry import (on_file, on_file_and_models, on_project, on_written_statement)

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
