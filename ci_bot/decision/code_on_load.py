"""Which changed files hold code that runs while the project is loaded (DESIGN 2).

A report is computed by the very code that it judges where such a file changes, so a person has to
look. Text that cannot run is no code: comments, docstrings, YAML without Jinja, and Jinja that only
reads an environment variable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

_REQUIREMENTS = re.compile(
    r"(^|/)(requirements[^/]*\.(txt|in)|constraints[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|"
    r"sqlmesh-requirements\.lock|uv\.lock|poetry\.lock|Pipfile(\.lock)?)$"
)
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_QUOTED = r"""(?:'[^'{}]*'|"[^"{}]*")"""
# Reading a variable of the environment runs nothing that a pull request wrote.
_ENV_VAR = re.compile(rf"\{{\{{-?\s*env_var\(\s*{_QUOTED}\s*(?:,\s*{_QUOTED}\s*)?\)\s*-?\}}\}}")
_TEMPLATED = frozenset({".sql", ".yaml", ".yml"})


@dataclass(frozen=True)
class ChangedFile:
    """One file of the diff with both versions; None where a side has no such file.

    `read` is False where the bot could not read the contents; such a file counts as changed code
    whenever its name allows it.
    """

    path: str
    before: bytes | None
    after: bytes | None
    read: bool = True


def code_that_runs_on_load(files: Iterable[ChangedFile], projects: Sequence[str]) -> list[str]:
    """Paths of changed files whose code runs on load, in order.

    Args:
        files: the diff of the pull request.
        projects: the project directories, relative to the repository ("." for its root).
    """
    return sorted({file.path for file in files if _is_code(file, projects)})


def is_looked_into(path: str, projects: Sequence[str]) -> bool:
    """Whether the content of a changed file decides if it is code; for all others the name does."""
    if not any(_inside(path, project) for project in projects):
        return False
    return PurePosixPath(path).suffix.lower() in {".py", *_TEMPLATED}


def _is_code(file: ChangedFile, projects: Sequence[str]) -> bool:
    if _REQUIREMENTS.search(file.path):
        return True
    if not is_looked_into(file.path, projects):
        return False
    suffix = PurePosixPath(file.path).suffix.lower()
    if suffix == ".py":
        return not file.read or _python(file.before) != _python(file.after)
    if suffix in _TEMPLATED:
        if not file.read:
            return True
        return _templates(file.before) != _templates(file.after)
    return False


def _inside(path: str, project: str) -> bool:
    root = PurePosixPath(project)
    return str(root) == "." or PurePosixPath(path).is_relative_to(root)


def _python(source: bytes | None) -> str | None:
    """The program without comments, layout and docstrings; the text where it does not parse."""
    if source is None:
        return None
    try:
        # Bytes and not text: a coding line changes what the program means.
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source.decode("utf-8", errors="replace")
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return ast.dump(tree)


def _templates(source: bytes | None) -> tuple[str, ...]:
    """The Jinja of a file that can run something: calls, blocks, macros; without env_var."""
    if source is None:
        return ()
    text = source.decode("utf-8", errors="replace")
    return tuple(_JINJA.findall(_ENV_VAR.sub("", text)))
