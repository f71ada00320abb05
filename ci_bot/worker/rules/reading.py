"""Reading the files of a change, as data."""

from __future__ import annotations

from pathlib import Path

from ci_bot.contracts.messages import Workplace
from ci_bot.worker.load_trace import not_loading
from ci_bot.worker.rules.inputs import ReadFile, no_file

# A larger file is no configuration and no model; rules that look at seeds read their first part.
MAX_FILE_BYTES = 4 * 1024 * 1024


def before(directory: str | None) -> ReadFile:
    """Reads the base branch's version of the changed files."""
    return _reader(Path(directory)) if directory else no_file


def after(workplace: Workplace) -> ReadFile:
    """Reads the files of the head, large ones of a copy where they are linked to."""
    linked = [Path(workplace.linked_to)] if workplace.linked_to else []
    return _reader(Path(workplace.repository), *linked)


def _reader(root: Path, *linked: Path) -> ReadFile:
    """Reads regular files below `root`, up to a size; links that lead out of it are not there."""
    tops = [path.resolve() for path in (root, *linked)]

    def read(path: str) -> bytes | None:
        file = (tops[0] / path).resolve()
        if not any(file.is_relative_to(top) for top in tops) or not file.is_file():
            return None
        with not_loading(), file.open("rb") as opened:
            return opened.read(MAX_FILE_BYTES)

    return read
