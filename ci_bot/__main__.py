"""`python -m ci_bot` and `ci-bot`: the program's entry point."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command line. Nothing is imported before a worker has started to import."""
    from ci_bot.bot.sandbox import start_early_worker_on_laptop

    start_early_worker_on_laptop(sys.argv[1:], os.environ)
    from ci_bot.bot.cli import main as run_command_line

    run_command_line()


if __name__ == "__main__":
    main()
