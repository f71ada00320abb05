"""Builds prod of a project: `python -m tests.projects.build_prod PROJECT UNTIL`, in its own JVM.

UNTIL is the moment at which prod was last run, so that its data ends there however late the test
is run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.worker.runtime import java


def build_prod(project: Path, until: str) -> None:
    """Plans and applies prod as of `until`."""
    os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
    set_console(NoopConsole())
    context = Context(paths=[str(project)])
    plan = context.plan_builder("prod", execution_time=until, skip_tests=True).build()
    context.apply(plan)
    context.close()


if __name__ == "__main__":
    build_prod(Path(sys.argv[1]), sys.argv[2])
