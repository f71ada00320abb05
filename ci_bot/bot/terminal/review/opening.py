"""The report as a page in the user's browser."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

from ci_bot.bot.report_files import PAGE
from ci_bot.machine import Machine

Opener = Callable[[str], bool]


def open_page(
    page: str, output: Path | None, machine: Machine, opener: Opener = webbrowser.open
) -> Path:
    """Shows the page in the user's browser, and says where it is; returns its file.

    Args:
        output: The directory that the page was written to; without one it gets a file of its own
            in the directory for temporary files, which stays there.
    """
    if output is None:
        file = Path(tempfile.mkdtemp(prefix="ci-bot-report-", dir=machine.temporary)) / PAGE
        file.write_text(page, encoding="utf-8")
    else:
        file = output / PAGE
    address = file.resolve().as_uri()
    shown = opener(address)
    print(
        f"The report: {address}" if shown else f"No browser could be started. Open {address}",
        file=machine.log,
        flush=True,
    )
    return file
