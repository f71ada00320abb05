"""Where results go: files, the terminal, or one JSON document on stdout (DESIGN 4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ci_bot.contracts.base import Contract
from ci_bot.errors import BadInput

Format = Literal["terminal", "markdown", "json"]


def write_files(directory: Path, name: str, document: Contract, markdown: str) -> None:
    """Writes NAME.json and NAME.md, both complete, into `directory`, which is created.

    Raises:
        BadInput: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.json").write_text(document.to_json(indent=2) + "\n", encoding="utf-8")
        (directory / f"{name}.md").write_text(markdown, encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"The report cannot be written to {directory}: {error.strerror}.",
            hint="Choose a directory that can be written with `--output`.",
            reason_code="output",
        ) from error
