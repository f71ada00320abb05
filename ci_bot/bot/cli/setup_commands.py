"""Commands to begin with: write the workflows, check what is needed, see a demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ci_bot.bot.actions import inputs
from ci_bot.bot.cli import options as shared
from ci_bot.bot.cli.command_line import (
    ParsedValue,
    WordChoice,
    declare_command,
    declare_option,
    run_guarded,
    run_local_command,
)
from ci_bot.bot.cli.options import with_projects


@declare_command(
    "ci-bot init --level review --pull-request",
    "ci-bot init --level full --project warehouse",
    "ci-bot init --upgrade --dry-run",
)
@shared.add_project_argument
@declare_option(
    "--project",
    "projects",
    type=ParsedValue(inputs.parse_path),
    multiple=True,
    metavar="PATH",
    help="Directory of a SQLMesh project; looked for otherwise. Repeatable, for one state.",
)
@declare_option(
    "--level",
    type=WordChoice("review", "apply", "full"),
    help="`review` needs no secret. `apply` adds PR environments. `full` adds commands, forks, the "
    "nightly sweep and the deployment. The level of before, else review.",
)
@shared.GATEWAY
@declare_option(
    "--action",
    type=ParsedValue(inputs.parse_release_name),
    metavar="OWNER/NAME@COMMIT",
    help="The release that the workflows name; the one that is installed otherwise.",
)
@declare_option("--upgrade", is_flag=True, help="Move pins to this release, in edited files, too.")
@declare_option(
    "--pull-request",
    is_flag=True,
    help="Commit the files on a branch of their own, push it, and open a pull request with `gh`.",
)
@declare_option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@declare_option(
    "--output",
    type=ParsedValue(inputs.parse_path),
    metavar="DIR",
    help="Write into this directory in place of the repository.",
)
def init_command(**options: Any) -> None:
    """Write the workflows that this repository needs, and say what is left to do.

    The project is read and not loaded. Files that somebody has edited stay as they are.
    """
    from ci_bot.bot.setup import SetupOptions, set_up_repository

    given = {**options, "projects": (*options["path"], *options["projects"])}
    del given["path"]
    choose = shared.choose_projects if sys.stdin is not None and sys.stdin.isatty() else None
    run_guarded(lambda machine: set_up_repository(machine, SetupOptions(**given), choose))


@declare_command("ci-bot doctor --project warehouse")
@shared.add_project_options
@shared.PYTHON_PATH
@shared.WORKER_ENV
@shared.TIMEOUT
@shared.ANSWER_FORMAT
def doctor_command(**options: Any) -> None:
    """Look at what the other commands need. Changes nothing."""
    from ci_bot.bot.laptop import doctor_locally

    run_local_command(doctor_locally, with_projects(options))


@declare_command("ci-bot demo --keep /tmp/demo")
@declare_option(
    "--keep",
    type=ParsedValue(inputs.parse_path),
    metavar="DIR",
    help="Keep the demo's files in this new directory.",
)
def demo_command(keep: str | None) -> None:
    """Show the life of one PR on embedded Spark, with real data."""
    from ci_bot.bot.demo import run_demo

    run_guarded(lambda machine: run_demo(machine, Path(keep) if keep else None))
