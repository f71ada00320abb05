"""What the janitor of the team's next `sqlmesh run` does: `python -m tests.projects.run_janitor
PROJECT`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.worker.runtime import java


def run(project: Path) -> None:
    """Without a model: it asks the state only, and Spark where something has expired."""
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
    set_console(NoopConsole())
    Context(paths=[str(project)], load=False).run_janitor(ignore_ttl=False)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
