"""Patterns of files, with git itself as the judge, and whom CODEOWNERS names."""

from __future__ import annotations

import random
import subprocess
from functools import partial
from pathlib import Path
from time import process_time

import pytest

from ci_bot.file_patterns import find_owner_line, read_owner_lines, read_pattern

# From GitHub's page about CODEOWNERS: pattern, a path, and whether it is meant.
PATTERNS = [
    ("*", "a/b.sql", True),
    ("*.js", "deep/in/a.js", True),
    ("*.js", "a.json", False),
    ("/build/logs/", "build/logs/x/y.txt", True),
    ("/build/logs/", "src/build/logs/x.txt", False),
    ("docs/*", "docs/getting-started.md", True),
    ("docs/*", "docs/build-app/troubleshooting.md", False),
    ("apps/", "src/apps/x.py", True),
    ("apps/", "apps", False),
    ("/docs/", "docs/a/b.md", True),
    ("/docs/", "x/docs/a.md", False),
    ("/scripts/", "scripts/run.sh", True),
    ("**/logs", "build/logs/a.txt", True),
    ("**/logs", "deeply/nested/logs", True),
    ("/apps/github", "apps/github", True),
    ("/apps/github", "apps/github/x", True),
    ("models/finance", "models/finance/a.sql", True),
    ("models/finance", "x/models/finance/a.sql", False),
    ("models/**/a.sql", "models/x/y/a.sql", True),
    ("models/**/a.sql", "models/a.sql", True),
    ("models/**", "models/x/y.sql", True),
    ("models/**", "models", False),
    ("a?.sql", "x/ab.sql", True),
    ("a?.sql", "a/.sql", False),
    ("a.sql", "a-sql", False),
    (r"with\ blank.sql", "with blank.sql", True),
    ("!*.js", "a.js", False),
    ("[ab].sql", "a.sql", False),
]


@pytest.mark.parametrize(("pattern", "path", "is_meant"), PATTERNS)
def test_codeowners__pattern_means_what_it_means_to_github(
    pattern: str, path: str, is_meant: bool
) -> None:
    found = find_owner_line(read_owner_lines(f"{pattern} @alice\n"), path)
    assert (found is not None) is is_meant


def test_codeowners__last_line_that_matches_counts() -> None:
    lines = read_owner_lines(
        "# all\n* @alice # everybody's\n\n*.sql @acme/data a@b.example\n/x.sql\n"
    )
    found = [find_owner_line(lines, path) for path in ("README.md", "a/b.sql", "x.sql")]

    assert [(line.number, line.owners) for line in found if line is not None] == [
        (2, ("@alice",)),
        (4, ("@acme/data", "a@b.example")),
        (5, ()),
    ]


NAMES = ("a", "b", "ab", "a.sql", "b.sql", "c d")
PIECES = (
    "a",
    "b",
    "ab",
    "*",
    "**",
    "a*",
    "*.sql",
    "?",
    "a?",
    "[ab]",
    r"\a",
    r"c\ d",
    "*b*",
    "[!a]",
)


def test_pattern__means_what_it_means_to_git(tmp_path: Path) -> None:
    draw = random.Random(7)
    paths = {"/".join(draw.choices(NAMES, k=draw.randint(1, 4))) for _ in range(80)}
    run = partial(subprocess.run, capture_output=True, text=True)
    run(["git", "init", "--quiet", str(tmp_path)], check=True)  # the machine's git
    excluded = tmp_path / ".git" / "info" / "exclude"
    for _ in range(150):
        middle = "/".join(draw.choices(PIECES, k=draw.randint(1, 4)))
        pattern = f"{draw.choice(('', '', '/'))}{middle}{draw.choice(('', '', '/'))}"
        excluded.write_text(f"{pattern}\n")
        asked = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin", "-z"]
        git = run(asked, input="\0".join(paths), check=False).stdout
        files = read_pattern(pattern)

        assert {path for path in paths if files.matches(path)} == set(git.split("\0")) - {""}, (
            pattern
        )


@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "**/a/" * 30 + "b", "/".join(["*a*"] * 60)])
def test_pattern__that_is_padded__takes_a_moment(pattern: str) -> None:
    before = process_time()
    assert not read_pattern(pattern).matches("/".join(["a" * 200] * 40))
    assert process_time() - before < 1
