"""The shop on DuckDB as a directory of a git repository, and a pull request on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop
from tests.projects.duck import write_duck_shop

Files = Mapping[str, str | bytes | None]


@dataclass(frozen=True)
class Repository:
    """A checkout of the pull request's branch; the project is its directory `project`."""

    root: Path
    git: LocalGit
    shop: Shop

    def commit(self, files: Files, message: str = "Change it") -> str:
        """Writes files (None removes one) and commits everything; returns the commit."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-f", ".")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, files: Files) -> RequestedReviewCommits:
        """A pull request that changes these files."""
        base = self.git("rev-parse", "HEAD")
        return RequestedReviewCommits(base=base, head=self.commit(files))

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")


def write_repository(root: Path, files: Files | None = None) -> Repository:
    """The repository with the shop on its main branch; nothing is built yet.

    Args:
        files: more of them, relative to the repository.
    """
    shop = write_duck_shop(root)
    # The repository is `root`, and what is not the project's stays out of it.
    git = LocalGit(root)
    (root / ".gitignore").write_text("*.duckdb\n*.duckdb.wal\n.cache/\nlogs/\n")
    repository = Repository(root, git, shop)
    repository.commit(files or {}, "The shop")
    return repository
