"""Runs statements on a project's Spark: `python -m tests.projects.spark_sql PROJECT SQL...`.

Prints one JSON line with the rows of each statement, as text.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.worker.runtime import java


def run(project: Path, statements: list[str]) -> list[list[list[str]]]:
    """The rows of each statement; nulls become the text None."""
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
    set_console(NoopConsole())
    spark = Context(paths=[str(project)], load=False).engine_adapter.spark
    return [
        [[str(cell) for cell in row] for row in spark.sql(text).collect()] for text in statements
    ]


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2:])))
