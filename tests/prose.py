"""Plain English in what people read: proselint's own checks, and the words of CONTRIBUTING.md.

Documents and templates are read as they stand, code by its literals and docstrings.
`python -m tests.prose` prints what it finds: file, line, words, and what to write instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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
# In a docstring a clause with "what" often names an argument or a value that has no other name.
FINE_IN_DOCSTRINGS = frozenset({"of what", "by what", "from what", "than what", "stands for"})
# What makes a sentence of words; a list of names has none of these.
_SENTENCE = re.compile(r"\b(?:the|an?|is|are|was|be|has|of|to|in|it|its|no|not|this|that)\b\s")
# Regular expressions and style sheets are no prose.
_PATTERN = re.compile(r"\\[sbwdSA]|\(\?|\w[:{][^\n]*;[^\n]*}")
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


def list_modules() -> list[Path]:
    """The code: users read its messages, and engineers its docstrings."""
    return sorted((ROOT / "ci_bot").rglob("*.py"))


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


def find_faults(
    path: Path, text: str, lines: Sequence[int] | None = None, fine: frozenset[str] = frozenset()
) -> Iterator[str]:
    """What is wrong with a page, a line each.

    Args:
        lines: Where each line of the text stands in the file; None: the text is the file.
        fine: Phrases to avoid elsewhere.
    """
    for found in LintFile(str(path), blank_all_but_prose(text)).lint(_make_config()):
        result = found.check_result
        begin, end = result.span
        words = " ".join(f"\n{blank_all_but_prose(text)}\n"[begin:end].split())
        if words.lower() in fine:
            continue
        at = found.pos[0] if lines is None else lines[found.pos[0] - 1]
        yield f"{path}:{at}: {words!r}: {result.message}"


def find_faults_in_code(path: Path, source: str) -> Iterator[str]:
    """What is wrong with a module's docstrings and with its literals of several words."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts = list(_list_texts(tree))
    of_people = [(node, text) for node, text in texts if id(node) not in docstrings]
    of_engineers = [(node, text) for node, text in texts if id(node) in docstrings]
    yield from _find_faults_in_texts(path, of_people, frozenset())
    yield from _find_faults_in_texts(path, of_engineers, FINE_IN_DOCSTRINGS)


def _find_faults_in_texts(
    path: Path, texts: Sequence[tuple[ast.expr, str]], fine: frozenset[str]
) -> Iterator[str]:
    """All of them make one page, with a line of no words between two."""
    page: list[str] = []
    lines: list[int] = []
    for node, text in texts:
        rows = [*text.splitlines(), "", f"{_BLANK}.", ""]
        page += rows
        lines += [node.lineno + at for at in range(len(rows))]
    yield from find_faults(path, "\n".join(page) + "\n", [*lines, 0, 0], fine)


def _list_texts(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Literals of several words; what an f-string puts in is blank. `"a b".split()` is a list."""
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    lists = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "split"
    }
    for node in ast.walk(tree):
        if id(node) in lists:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else _BLANK
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = "" if id(node) in parts else node.value
        else:
            continue
        if _SENTENCE.search(text) and not _PATTERN.search(text):
            yield node, text


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
    for path in list_modules():
        found += find_faults_in_code(path.relative_to(ROOT), path.read_text("utf-8"))
    print("\n".join(found) or "nothing found")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
