"""The demo's project as a git repository: prod's models on `main`, the change on a branch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_bot.errors import BadInput, BotError

MAIN, BRANCH = "main", "fleet"
# As a project's own .gitignore has it; Python writes the first beside models that it loads.
_NOT_KEPT = "__pycache__/\n.cache/\n"
_AUTHOR = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org", "-c", "gc.auto=0")


@dataclass(frozen=True)
class DemoRepository:
    """Git in the directory `root`; the user's own configuration takes no part in it."""

    root: Path
    environ: Mapping[str, str]

    def begin(self) -> str:
        """Makes the repository with everything that is there on its main branch; the commit."""
        self._git("init", "--quiet", f"--initial-branch={MAIN}")
        excluded = self.root / ".git" / "info" / "exclude"
        excluded.parent.mkdir(exist_ok=True)
        excluded.write_text(_NOT_KEPT, encoding="utf-8")
        return self._commit("The models as prod has them")

    def branch(self) -> None:
        """Begins the pull request's branch."""
        self._git("checkout", "--quiet", "-b", BRANCH)

    def change(self, message: str) -> str:
        """Commits everything on the branch; returns the commit."""
        return self._commit(message)

    def merge(self) -> str:
        """Merges the branch into main; returns the merge commit."""
        self._git("checkout", "--quiet", MAIN)
        self._git("merge", "--quiet", "--no-ff", "--message", "Merge pull request #7", BRANCH)
        return self._git("rev-parse", "HEAD")

    def _commit(self, message: str) -> str:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self._git("rev-parse", "HEAD")

    def _git(self, *arguments: str) -> str:
        environment = {
            **{name: value for name, value in self.environ.items() if not name.startswith("GIT_")},
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        program = shutil.which("git", path=self.environ.get("PATH")) or "git"
        try:
            done = subprocess.run(
                [program, *_AUTHOR, "-C", str(self.root), *arguments],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise BadInput(
                "There is no git program.", hint="Install git.", reason_code="git_failed"
            ) from error
        if done.returncode != 0:
            raise BotError(
                f"`git {arguments[0]}` failed in the demo: {done.stderr.strip()}",
                hint="The demo needs git 2.28 or newer.",
                reason_code="demo_failed",
            )
        return done.stdout.strip()
