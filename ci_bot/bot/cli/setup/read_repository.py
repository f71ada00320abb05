"""Reads what a repository's workflows depend on. Files are read as text; nothing is run."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_bot.bot.cli.setup.read_configuration import (
    join_configurations,
    read_python_config,
    read_yaml_config,
)
from ci_bot.bot.cli.setup.repository_facts import (
    WORKFLOWS,
    FoundSetupProject,
    SetupRepositoryFacts,
    find_locked_version,
    find_python_version,
    find_versions_for_setup,
    is_version_file,
    list_requirements_files,
)
from ci_bot.errors import BadInput
from ci_bot.static_config import FILES

# The image's packages, by the names that code imports. tests/contract/test_setup.py compares them
# with requirements.lock.
IMAGE_MODULES = frozenset({
    "IPython", "click", "croniter", "cryptography", "dateparser", "dateutil", "dotenv",
    "duckdb", "github", "humanize", "hyperscript", "importlib_metadata", "ipywidgets",
    "jinja2", "json_stream", "markupsafe", "numpy", "packaging", "pandas", "psutil",
    "psycopg2", "py4j", "pydantic", "pydantic_core", "pygments", "pymysql", "pyspark",
    "pytz", "requests", "rich", "ruamel", "setuptools", "sqlglot", "sqlmesh", "sqlmesh_dbt",
    "tenacity", "time_machine", "typing_extensions", "tzlocal", "urllib3",
})  # fmt: skip


def list_missing_imports(texts: Iterable[str], own: Iterable[str]) -> list[str]:
    """Lists the packages that files import, except Python's, the image's and the project's own.

    Args:
        own: Names of the modules and packages in the repository.
    """
    known = IMAGE_MODULES | sys.stdlib_module_names | set(own)
    return sorted({name for text in texts for name in _iterate_imported(text)} - known)


def _iterate_imported(text: str) -> Iterator[str]:
    """Yields the first part of each absolute import, in any place of the file."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


_PYTHON = "config.py"
_DBT, _PROFILES = "dbt_project.yml", "profiles.yml"
# Any program may use these names for its settings, so the content has to look like SQLMesh's.
_SHARED_NAMES = frozenset({"config.yaml", "config.yml"})
_LOOKS_LIKE = re.compile(
    r"(?m)^(?:gateways|default_gateway|model_defaults|default_connection|state_connection):"
)
_IMPORTS_SQLMESH = re.compile(r"(?m)^\s*(?:from|import)\s+sqlmesh\b")
_SKIPPED = frozenset({"node_modules", "site-packages", "venv", "env", "build", "dist", "target"})
_DEEPEST, _MOST_DIRECTORIES, _LARGEST = 6, 20_000, 4_000_000
_MOST_FILES = 2_000
# Directories of a project whose Python code SQLMesh loads.
_WITH_PYTHON = ("macros", "models", "audits", "signals", "materializations", "linter")
_OLD_BOT = re.compile(r"\bsqlmesh_cicd\b")


def find_repository_root_for_setup(directory: Path) -> Path:
    """Finds the root of the git repository that a directory is in.

    Raises:
        BadInput: it is in none.
    """
    for place in (directory, *directory.parents):
        if (place / ".git").exists():
            return place
    raise BadInput(
        f"{directory} is in no git repository, so there is no place for workflows.",
        hint="Change to a clone of your repository, or make one with `git init`.",
        reason_code="no_repository",
    )


def find_projects_for_setup(root: Path) -> list[str]:
    """Lists the directories of all SQLMesh projects, relative to the repository, in order."""
    found = []
    for directory in _iterate_directories(root):
        if is_sqlmesh_project(directory):
            found.append(_make_relative_path(directory, root))
    return found


def read_repository_for_setup(root: Path, projects: tuple[str, ...]) -> SetupRepositoryFacts:
    """Reads everything that the workflows of these projects depend on."""
    read = tuple(_read_project(root, project) for project in projects)
    files = _read_version_files(root, projects)
    return SetupRepositoryFacts(
        projects=read,
        branch=_find_default_branch(root),
        versions=find_versions_for_setup(files),
        python=find_python_version(files),
        old_bot=tuple(_list_old_bot_workflows(root)),
        requirements=tuple(list_requirements_files(files)),
        imports=tuple(
            (name, find_locked_version(name, files)) for name in _list_imports_missing(root, read)
        ),
    )


def is_sqlmesh_project(directory: Path) -> bool:
    """Whether a directory has a configuration of SQLMesh."""
    return bool(_list_configuration_files(directory))


def _read_project(root: Path, project: str) -> FoundSetupProject:
    directory = root / project
    parts = [
        read_python_config(_read_repository_text(file))
        if file.suffix == ".py"
        else read_yaml_config(_read_repository_text(file))
        for file in _list_configuration_files(directory)
    ]
    is_dbt = (directory / _DBT).is_file()
    if is_dbt:
        parts += [
            read_yaml_config(_read_repository_text(file))
            for file in _list_dbt_files(directory, root)
        ]
    return FoundSetupProject(project, join_configurations(parts), is_dbt)


def _list_configuration_files(directory: Path) -> list[Path]:
    """Lists the files that configure SQLMesh in a directory, YAML first."""
    found = [directory / name for name in FILES if (directory / name).is_file()]
    files = [
        file
        for file in found
        if file.name not in _SHARED_NAMES or _LOOKS_LIKE.search(_read_repository_text(file))
    ]
    python = directory / _PYTHON
    if python.is_file() and _IMPORTS_SQLMESH.search(_read_repository_text(python)):
        files.append(python)
    return files


def _list_dbt_files(directory: Path, root: Path) -> Iterator[Path]:
    yield directory / _DBT
    for place in (directory, root):
        if (place / _PROFILES).is_file():
            yield place / _PROFILES
            return


def _iterate_directories(root: Path) -> Iterator[Path]:
    """Yields the repository's directories, without hidden ones and those of installed packages."""
    for count, (place, names, _) in enumerate(os.walk(root)):
        if count > _MOST_DIRECTORIES:
            return
        deep = len(Path(place).relative_to(root).parts)
        names[:] = sorted(
            name
            for name in names
            if deep < _DEEPEST
            and not name.startswith(".")
            and name not in _SKIPPED
            and not (Path(place) / name / "pyvenv.cfg").exists()
        )
        yield Path(place)


def _read_version_files(root: Path, projects: tuple[str, ...]) -> dict[str, str]:
    """Reads lock and requirements files of the projects' directories and of those above them."""
    places: list[Path] = []
    for project in projects:
        directory = root / project
        places += [directory, *(each for each in directory.parents if each.is_relative_to(root))]
    files = {}
    for place in dict.fromkeys([*places, root, root / "requirements"]):
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            if is_version_file(file.name) and file.is_file():
                files[_make_relative_path(file, root)] = _read_repository_text(file)
    return files


def _list_imports_missing(root: Path, projects: Iterable[FoundSetupProject]) -> list[str]:
    """Lists what the projects' Python code imports that the image does not have."""
    texts, own = [], []
    for project in projects:
        directory = root / project.path
        files = [directory / _PYTHON]
        for name in _WITH_PYTHON:
            files += sorted((directory / name).rglob("*.py"))[:_MOST_FILES]
        texts += [_read_repository_text(file) for file in files if file.is_file()]
        for place in {directory, root, *(directory / name for name in _WITH_PYTHON)}:
            own += [file.stem for file in place.iterdir()] if place.is_dir() else []
    return list_missing_imports(texts, own)


def _list_old_bot_workflows(root: Path) -> Iterator[str]:
    directory = root / WORKFLOWS
    for file in sorted(directory.glob("*.y*ml")) if directory.is_dir() else ():
        if file.is_file() and _OLD_BOT.search(_read_repository_text(file)):
            yield _make_relative_path(file, root)


def _find_default_branch(root: Path) -> str:
    """Finds the default branch of `origin`; else the checked out `master` or `main`, or `main`."""
    git = _find_git_directory(root)
    for name in ("refs/remotes/origin/HEAD", "HEAD"):
        head = re.fullmatch(
            r"ref: refs/(?:remotes/origin|heads)/(\S+)\s*",
            _read_repository_text(git / name) if (git / name).is_file() else "",
        )
        if head and (name != "HEAD" or head[1] in ("main", "master")):
            return head[1]
    return "main"


def _find_git_directory(root: Path) -> Path:
    """Finds the git directory; for a linked work tree that of its repository."""
    git = root / ".git"
    if git.is_file():
        named = re.match(r"gitdir: (.+)", _read_repository_text(git))
        if named:
            linked = root / named[1].strip()
            common = linked / "commondir"
            return linked / _read_repository_text(common).strip() if common.is_file() else linked
    return git


def _make_relative_path(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _read_repository_text(file: Path) -> str:
    """Reads a file's text up to the size limit; bytes that are not UTF-8 are replaced.

    Raises:
        BadInput: it cannot be read.
    """
    try:
        with file.open("rb") as opened:
            return opened.read(_LARGEST).decode("utf-8", errors="replace")
    except OSError as error:
        raise BadInput(
            f"{file} cannot be read: {error.strerror}.",
            hint="Make it readable for this account.",
            reason_code="bad_path",
        ) from error
