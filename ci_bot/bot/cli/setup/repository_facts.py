"""What is known about a repository that its workflows depend on.

The versions of SQLMesh, PySpark and Python come from its lock and requirements files, in the
formats of pip, pip-tools, Poetry, uv, PDM and Pipenv. The files are read as text: a search for one
package's name and its version, for which each format has lines of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ci_bot.bot.cli.setup.read_configuration import SetupProjectConfiguration
from ci_bot.protocol.supported_versions import find_exact_version

PACKAGES = ("sqlmesh", "pyspark")
# Files that name one version of each package come first, then files that people write.
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
_MADE_BY_HAND = ("pyproject.toml", "setup.cfg", "Pipfile")
PYTHON_FILE = ".python-version"
_REQUIREMENTS = re.compile(r"(?:.*[-_.])?requirements?(?:[-_.].*)?\.(?:txt|lock)", re.IGNORECASE)


@dataclass(frozen=True)
class FoundSetupVersion:
    """A package's version, according to one file.

    Attributes:
        version: The one version, `0.230.1`; None if the file allows several.
        asked: The file's own text, `>=0.230`.
        file: The file, relative to the repository.
    """

    version: str | None
    asked: str
    file: str

    @property
    def is_in_requirements(self) -> bool:
        """Whether the file is one that pip installs."""
        return is_pip_requirements_file(self.file)


def is_pip_requirements_file(path: str) -> bool:
    """Whether a file of this name is a requirements file of pip."""
    return bool(_REQUIREMENTS.fullmatch(path.rpartition("/")[2]))


def is_version_file(name: str) -> bool:
    """Whether a file of this name can name a version."""
    return name in (*_LOCKS, *_MADE_BY_HAND, PYTHON_FILE) or is_pip_requirements_file(name)


def find_versions_for_setup(files: Mapping[str, str]) -> dict[str, FoundSetupVersion]:
    """Finds the version of each package, in the file that is most exact about it.

    Args:
        files: Texts by their path in the repository, the project's own before those above it.
    """
    found: dict[str, FoundSetupVersion] = {}
    for package in PACKAGES:
        named = [
            version
            for path, text in sorted(files.items(), key=lambda each: _order_lock_files(each[0]))
            if (version := read_version_for_setup(package, path, text)) is not None
        ]
        # A file that allows several versions counts only if no file names one.
        exact = [each for each in named if each.version is not None]
        if named:
            found[package] = (exact or named)[0]
    return found


def read_version_for_setup(package: str, path: str, text: str) -> FoundSetupVersion | None:
    """Reads what one file says about a package; None if it says nothing."""
    name = path.rpartition("/")[2]
    if name in ("uv.lock", "poetry.lock", "pdm.lock"):
        locked = re.search(
            rf'(?m)^\[\[package\]\]\s*\nname = "{package}"\s*\nversion = "([^"]+)"', text
        )
        return FoundSetupVersion(locked[1], f"=={locked[1]}", path) if locked else None
    if name == "Pipfile.lock":
        requirement = _read_pipfile_lock(package, text)
    elif is_pip_requirements_file(name):
        requirement = _find_version_group(
            rf"(?mi)^[ \t]*{package}(?![\w.-])[ \t]*(?:\[[^\]]*\])?[ \t]*([^;#\\\n]*)", text
        )
    else:
        # A line of a list (PEP 621), or a key of Poetry's table.
        requirement = _find_version_group(
            rf"(?i)['\"]{package}(?![\w.-])\s*(?:\[[^\]]*\])?\s*([^;'\"\n]*)['\"]", text
        )
        if requirement is None:
            requirement = _find_version_group(
                rf"(?mi)^\s*{package}\s*=\s*(?:\{{[^}}\n]*?version\s*=\s*)?['\"]([^'\"]+)['\"]",
                text,
            )
    if requirement is None:
        return None
    requirement = requirement.strip().strip("()")
    bare = (
        re.fullmatch(r"\d+(?:\.\d+)+", requirement)
        if name in ("pyproject.toml", "Pipfile")
        else None
    )
    exact = bare[0] if bare else find_exact_version(requirement)
    return FoundSetupVersion(exact, requirement, path)


def find_python_version(files: Mapping[str, str]) -> str | None:
    """Finds the minor version of Python that a project names, as `3.12`; None if it names none."""
    for path, text in files.items():
        if path.rpartition("/")[2] == PYTHON_FILE:
            named = re.match(r"\s*(?:cpython-?)?(3\.\d+)", text)
            if named:
                return named[1]
    return None


def find_locked_version(package: str, files: Mapping[str, str]) -> FoundSetupVersion | None:
    """Finds the one version of any package that a lock file names; None if none does."""
    for path, text in sorted(files.items(), key=lambda each: _order_lock_files(each[0])):
        if path.rpartition("/")[2] in _LOCKS:
            found = read_version_for_setup(re.escape(package), path, text)
            if found is not None and found.version is not None:
                return found
    return None


def _find_version_group(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found[1] if found else None


def _read_pipfile_lock(package: str, text: str) -> str | None:
    try:
        entry = json.loads(text)["default"][package]
        return str(entry["version"])
    except (ValueError, KeyError, TypeError):
        return None


def _order_lock_files(path: str) -> tuple[int, int, int]:
    """Sorts lock files first; then the deepest in the tree, which are the project's own."""
    name = path.rpartition("/")[2]
    kind = 0 if name in _LOCKS else 1 if is_pip_requirements_file(name) else 2
    # Of several requirements files the one with the shortest name.
    return kind, -path.count("/"), len(name)


def list_requirements_files(paths: Iterable[str]) -> list[str]:
    """Lists the requirements files among some paths, in the order in which they count."""
    return sorted(
        (path for path in paths if is_pip_requirements_file(path)),
        key=_order_lock_files,
    )


WORKFLOWS = ".github/workflows"


@dataclass(frozen=True)
class FoundSetupProject:
    """A SQLMesh project.

    Attributes:
        path: Its directory, relative to the repository; `.` is the repository's root.
        is_dbt: Whether it is a dbt project.
    """

    path: str
    configuration: SetupProjectConfiguration
    is_dbt: bool = False


@dataclass(frozen=True)
class SetupRepositoryFacts:
    """What is known about a repository.

    Attributes:
        branch: The default branch.
        versions: Of SQLMesh and PySpark, by their names.
        python: The version of Python that the project names.
        old_bot: Workflows that run SQLMesh's own bot, relative to the repository.
        requirements: The requirements files of pip; the first one counts.
        imports: Packages that the models import and the image does not have, each with the version
            that a lock file names.
    """

    projects: tuple[FoundSetupProject, ...]
    branch: str = "main"
    versions: Mapping[str, FoundSetupVersion] = field(default_factory=dict)
    python: str | None = None
    old_bot: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    imports: tuple[tuple[str, FoundSetupVersion | None], ...] = ()
