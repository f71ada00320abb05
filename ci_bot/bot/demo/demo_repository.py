"""The demo's project as a git repository: prod's models on `main`, the change on a branch."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.git import NO_GIT
from ci_bot.bot.report import find_resource
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

    def create_repository(self) -> str:
        """Makes the repository with everything that is there on its main branch; the commit."""
        self._run_git("init", "--quiet", f"--initial-branch={MAIN}")
        excluded = self.root / ".git" / "info" / "exclude"
        excluded.parent.mkdir(exist_ok=True)
        excluded.write_text(_NOT_KEPT, encoding="utf-8")
        return self._commit_all("The models as prod has them")

    def start_branch(self, name: str = BRANCH) -> None:
        """Begins a pull request's branch where main is."""
        self._run_git("checkout", "--quiet", "-b", name, MAIN)

    def commit_change(self, message: str) -> str:
        """Commits everything on the branch; returns the commit."""
        return self._commit_all(message)

    def return_to_branch(self) -> None:
        """Checks out the branch of the first pull request again."""
        self._run_git("checkout", "--quiet", BRANCH)

    def merge_branch(self) -> str:
        """Merges the branch into main; returns the merge commit."""
        self._run_git("checkout", "--quiet", MAIN)
        self._run_git("merge", "--quiet", "--no-ff", "--message", "Merge pull request #7", BRANCH)
        return self._run_git("rev-parse", "HEAD")

    def _commit_all(self, message: str) -> str:
        self._run_git("add", "--all")
        self._run_git("commit", "--quiet", "--message", message)
        return self._run_git("rev-parse", "HEAD")

    def _run_git(self, *arguments: str) -> str:
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
            raise BadInput(NO_GIT, hint="Install git.", reason_code="git_failed") from error
        if done.returncode != 0:
            raise BotError(
                f"`git {arguments[0]}` failed in the demo: {done.stderr.strip()}",
                hint="The demo needs git 2.28 or newer.",
                reason_code="demo_failed",
            )
        return done.stdout.strip()


# Where a demo keeps its things, and how its project and its change get there.


_FLIGHTS = Path(str(find_resource("examples"))) / "flights"

PROJECT_FILES = _FLIGHTS / "project"

CHANGE_FILES = _FLIGHTS / "change"


@dataclass(frozen=True)
class DemoLayout:
    """The folders of one demo below `home`, an absolute path."""

    home: Path

    @property
    def project_directory(self) -> Path:
        """The SQLMesh project, as a checkout would have it."""
        return self.home / "project"

    @property
    def data_directory(self) -> Path:
        """The raw files, and the Parquet files of the raw tables."""
        return self.home / "data"

    @property
    def warehouse_directory(self) -> Path:
        """Spark's warehouse with the embedded metastore in it."""
        return self.home / "warehouse"

    @property
    def state_file(self) -> Path:
        """The DuckDB file with SQLMesh's state."""
        return self.home / "state.db"

    def list_variables(self) -> dict[str, str]:
        """The environment variables that the project's config.yaml reads."""
        return {
            "FLIGHTS_WAREHOUSE": str(self.warehouse_directory),
            "FLIGHTS_STATE": str(self.state_file),
        }

    def create_layout(self) -> None:
        """Lay out the folders with the project as it is on the main branch."""
        for folder in (self.data_directory, self.warehouse_directory):
            folder.mkdir(parents=True, exist_ok=True)
        _copy_files(PROJECT_FILES, self.project_directory)

    def apply_change(self) -> list[str]:
        """Put the pull request's files over the project.

        Returns:
            The changed and added files, relative to the project, sorted, with forward slashes.
        """
        _copy_files(CHANGE_FILES, self.project_directory)
        return list_change_files()


def list_change_files() -> list[str]:
    """The files that the pull request adds or changes, relative to the project, sorted."""
    found = (path for path in CHANGE_FILES.rglob("*") if path.is_file() and _is_project_file(path))
    return sorted(path.relative_to(CHANGE_FILES).as_posix() for path in found)


def _is_project_file(path: Path) -> bool:
    return "__pycache__" not in path.parts and ".cache" not in path.parts


def _copy_files(source: Path, target: Path) -> None:
    # Byte code and SQLMesh's cache may lie beside the files once somebody has worked on them.
    ignore = shutil.ignore_patterns("__pycache__", ".cache", "*.pyc", "logs")
    # The time of a copy is now, as with a checkout. SQLMesh caches a model under the newest time
    # among its own file, audits, macros and configuration (SqlMeshLoader._Cache), so that a changed
    # file with an older time than those would not be read again.
    shutil.copytree(
        source, target, ignore=ignore, copy_function=shutil.copyfile, dirs_exist_ok=True
    )
