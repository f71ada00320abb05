"""Rules on the files of a change, also if the project does not load.

A module must be imported here to take part.
"""

from __future__ import annotations

from ci_bot.worker.rules.files import (
    configuration,
    credentials,
    deployments,
    macro_code,
    package_versions,
    project_definitions,
    run_commands,
    seed_values,
    seeds,
    settings,
    sql_text,
    unit_tests,
    unseen_files,
)
from ci_bot.worker.rules.registry import (
    on_file,
    on_file_and_models,
    on_project,
    on_written_statement,
)

FILE_RULES, MODEL_FILE_RULES = on_file, on_file_and_models
STATEMENT_FILE_RULES, PROJECT_RULES = on_written_statement, on_project
