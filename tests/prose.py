"""Plain English in what people read: proselint's own checks, and the words of CONTRIBUTING.md.

`python -m tests.prose` prints what it finds: file, line, words, and what to write instead.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from proselint.checks import __register__ as published
from proselint.config import Config
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check
from proselint.registry.checks.types import PreferredForms
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
OURS = "plain_english"
# Curly quotes are no matter of English, and "color" is how an option and CSS spell it.
WITHOUT = ("typography", "spelling.consistency")
# No blank: words on both sides of a span of code are no word that stands twice.
_BLANK = "~"
_NOT_PROSE = re.compile(
    r"""
    \A---\n.*?^---$               # what a rule's page declares
    | ^```.*?^```$                # code
    | `[^`\n]+`
    | \{[%\#{].*?[}%\#]\}         # Jinja
    | <!--.*?--> | </?[a-z][^<>]*>
    | \]\([^)\s]+\)               # where a link leads
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


def list_pages() -> list[Path]:
    """What people read of the repository, and the texts that comments are made of."""
    return [
        *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "RELEASING.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "templates").rglob("*.j2")),
    ]


def read_words_to_avoid(text: str) -> dict[str, str]:
    """The table below "Words to avoid": each phrase, and what to write instead."""
    table = text.partition("## Words to avoid\n")[2].partition("\n## ")[0]
    found: dict[str, str] = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            avoid, instead = (cell.strip() for cell in line.strip("|").split("|"))
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", avoid), instead)
    return found


def blank_all_but_prose(text: str) -> str:
    """The text with everything else blank, so that each word stays in its line."""
    return _NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", _BLANK, found[0]), text)


def find_faults(path: Path, text: str) -> Iterator[str]:
    """What is wrong with a page, a line each."""
    for found in LintFile(str(path), blank_all_but_prose(text)).lint(_make_config()):
        result = found.check_result
        begin, end = result.span
        words = " ".join(f"\n{blank_all_but_prose(text)}\n"[begin:end].split())
        yield f"{path}:{found.pos[0]}: {words!r}: {result.message}"


@cache
def _make_config() -> Config:
    registry = CheckRegistry()
    registry.register_many(published)
    registry.register(_make_check(read_words_to_avoid(CONTRIBUTING.read_text("utf-8"))))
    checks = dict.fromkeys(WITHOUT, False)
    checks |= {check.path.partition(".")[0]: True for check in registry.checks}
    # The more precise a name is, the earlier it has to stand.
    checks = dict(sorted(checks.items(), key=lambda item: -item[0].count(".")))
    return Config(max_errors=10_000, checks={**checks, "restricted": False, "typography": False})


def _make_check(avoided: Mapping[str, str]) -> Check:
    """A phrase counts also where a line ends in the middle of it."""
    return Check(
        check_type=PreferredForms(
            {re.escape(phrase).replace(r"\ ", r"\s+"): to for phrase, to in avoided.items()}
        ),
        path=f"{OURS}.words",
        message="CONTRIBUTING.md, Words to avoid. Write: {}.",
    )


def main() -> int:
    found = [
        line
        for path in list_pages()
        for line in find_faults(path.relative_to(ROOT), path.read_text("utf-8"))
    ]
    print("\n".join(found) or "nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
