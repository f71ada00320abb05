"""Where a demo keeps its things, and how its project and its change get there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ci_bot.bot.resources import resource

_FLIGHTS = Path(str(resource("examples"))) / "flights"
PROJECT_FILES = _FLIGHTS / "project"
CHANGE_FILES = _FLIGHTS / "change"


@dataclass(frozen=True)
class DemoLayout:
    """The folders of one demo below `home`, an absolute path."""

    home: Path

    @property
    def project(self) -> Path:
        """The SQLMesh project, as a checkout would have it."""
        return self.home / "project"

    @property
    def data(self) -> Path:
        """The raw files, and the Parquet files of the raw tables."""
        return self.home / "data"

    @property
    def warehouse(self) -> Path:
        """Spark's warehouse with the embedded metastore in it."""
        return self.home / "warehouse"

    @property
    def state(self) -> Path:
        """The DuckDB file with SQLMesh's state."""
        return self.home / "state.db"

    def variables(self) -> dict[str, str]:
        """The environment variables that the project's config.yaml reads."""
        return {"FLIGHTS_WAREHOUSE": str(self.warehouse), "FLIGHTS_STATE": str(self.state)}

    def create(self) -> None:
        """Lay out the folders with the project as it is on the main branch."""
        for folder in (self.data, self.warehouse):
            folder.mkdir(parents=True, exist_ok=True)
        _copy(PROJECT_FILES, self.project)

    def apply_change(self) -> list[str]:
        """Put the pull request's files over the project.

        Returns:
            The changed and added files, relative to the project, sorted, with forward slashes.
        """
        _copy(CHANGE_FILES, self.project)
        return change_files()


def change_files() -> list[str]:
    """The files that the pull request adds or changes, relative to the project, sorted."""
    found = (path for path in CHANGE_FILES.rglob("*") if path.is_file() and _ours(path))
    return sorted(path.relative_to(CHANGE_FILES).as_posix() for path in found)


def _ours(path: Path) -> bool:
    return "__pycache__" not in path.parts and ".cache" not in path.parts


def _copy(source: Path, target: Path) -> None:
    # Byte code and SQLMesh's cache may lie beside the files once somebody has worked on them.
    ignore = shutil.ignore_patterns("__pycache__", ".cache", "*.pyc", "logs")
    # The time of a copy is now, as with a checkout. SQLMesh caches a model under the newest time
    # among its own file, audits, macros and configuration (SqlMeshLoader._Cache), so that a changed
    # file with an older time than those would not be read again.
    shutil.copytree(
        source, target, ignore=ignore, copy_function=shutil.copyfile, dirs_exist_ok=True
    )
