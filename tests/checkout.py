"""A repository on disk, made commit by commit, as a test needs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

GIT = shutil.which("git") or "git"


class Repository:
    """A repository below `root`, which is made unless it is there already."""

    def __init__(self, root: Path, *, new: bool = True) -> None:
        self.root = root
        if new:
            root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@example.org")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            [GIT, "-c", "commit.gpgsign=false", "-C", str(self.root), *arguments],
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        )
        return done.stdout.strip()

    def commit(self, **files: str | None) -> str:
        for name, content in files.items():
            path = self.root / name.replace("__", "/").replace("_sql", ".sql")
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")
        return self.git("rev-parse", "HEAD")
