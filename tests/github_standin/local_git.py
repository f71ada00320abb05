"""A git repository on disk for tests that need real commits."""

from __future__ import annotations

import subprocess
from pathlib import Path


class LocalGit:
    """A git repository on disk, by an author whose e-mail GitHub knows nobody for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str) -> str:
        """Run git; returns what it printed."""
        identity = ["-c", "user.name=Ä Author", "-c", "user.email=a@example.com"]
        command = ["git", "-C", str(self.root), *identity, "-c", "commit.gpgsign=false", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, files: dict[str, bytes], message: str, *more: str) -> None:
        """Write the files and commit everything."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self("add", ".")
        self("commit", "-q", "-m", message, *more)
