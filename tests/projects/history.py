"""A repository whose commits are written by a test: base and head of a pull request."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits

CONFIG = """\
gateways:
  main:
    connection: {type: duckdb}
model_defaults: {dialect: duckdb, start: 2024-01-01}
"""


def sql_model(name: str, query: str = "SELECT 1 AS one") -> str:
    return f"MODEL (name shop.{name}, kind FULL);\n\n{query}\n"


BROKEN = sql_model("broken", "SELECT (1 AS one")


class Repository:
    """A git repository below a test's own directory; what is checked out is the last commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self._git("init", "--quiet")

    def commit(self, files: Mapping[str, str | None]) -> str:
        """Writes the files (None removes one), and gives the commit that holds them."""
        for name, text in files.items():
            path = self.root / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", "x")
        return self._git("rev-parse", "HEAD")

    def pull_request(
        self, base: Mapping[str, str | None], head: Mapping[str, str | None]
    ) -> RequestedReviewCommits:
        """A base with the files of `base`, and a head that changes those of `head`."""
        return RequestedReviewCommits(base=self.commit(base), head=self.commit(head))

    def _git(self, *arguments: str) -> str:
        author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        done = subprocess.run(
            ["git", *author, "-C", str(self.root), *arguments],  # noqa: S607 - the machine's git
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()
