"""Which changed files hold code that ran while the project was loaded.

A report is computed by the very code that it judges where such a file changes, so a person has to
look. What was loaded decides, wherever in the repository it lies: the worker tells each file before
anything in it can run (`cage/watch/trace.py`), and requirements count as loaded where this run has
installed them. Of the changed ones among them, data is no code: text whose Jinja only writes text,
and Python whose comments and docstrings alone have changed. What is not known to be data counts as
code: byte code, native modules, archives, pickles, `.pth` and `.env` files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from jinja2 import Environment
from jinja2.exceptions import TemplateSyntaxError

from ci_bot.bot.decision.harmless_jinja import only_writes_text
from ci_bot.bot.decision.unused_code import defined

_REQUIREMENTS = re.compile(
    r"(^|/)(requirements[^/]*\.(txt|in)|constraints[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|"
    r"sqlmesh-requirements\.lock|uv\.lock|poetry\.lock|Pipfile(\.lock)?)$"
)
# Where SQLMesh, or Python at its start, looks for modules by itself.
_LOOKED_THROUGH = frozenset(
    {"audits", "linter", "macros", "materializations", "metrics", "models", "signals", "tests"}
)
_NAMELESS = frozenset(
    {"__init__", "__main__", "config", "conftest", "sitecustomize", "usercustomize"}
)
_JINJA = Environment(autoescape=True)
_TAG_BEGINS = frozenset({"variable_begin", "block_begin"})
_TAG_ENDS = frozenset({"variable_end", "block_end"})
# Rows, which nobody renders or runs.
_TABLES = frozenset({".csv", ".tsv"})
# Text that is code only as far as it holds Jinja.
_TEXTS = frozenset({".sql", ".yaml", ".yml", ".md", ".rst", ".txt", ".json", ".jsonl", ".ndjson"})
# What is code wherever it lies, for loads of which nothing is known.
_CODE = frozenset(
    {".py", ".pyc", ".pyw", ".pyd", ".so", ".dylib", ".dll", ".zip", ".egg", ".whl", ".pth", ".pkl",
     ".pickle", ".joblib", ".jar", ".sh", ".env", ".sql", ".yaml", ".yml"}
)  # fmt: skip

# Both sides of one file, and of all together. A change's author chooses what is parsed here, in the
# process that nothing bounds; a megabyte of small statements takes half a minute.
LONGEST_PARSED_BYTES = 256 * 1024
MOST_PARSED_BYTES = 4 * 1024 * 1024


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


def could_run_on_load(
    path: str, *, deleted: bool, loaded: frozenset[str] | None, projects: Sequence[str]
) -> bool:
    """Whether the contents of a changed file decide if it is code that ran on load.

    Args:
        path: relative to the repository.
        deleted: the head has no such file, so it cannot have been opened; a module of the project
            that is gone changes what runs all the same.
        loaded: the changed files that were opened on load; None where that is not known.
        projects: the project directories, relative to the repository ("." for its root).
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _TABLES:
        return False
    if deleted:
        return suffix == ".py" and any(_inside(path, project) for project in projects)
    if loaded is None:
        known = suffix in _CODE or PurePosixPath(path).name == ".env"
        return known or _is_requirement(path, projects)
    return path in loaded


# Whether a word stands in any other file of the head than the one of this path.
Mentioned = Callable[[str, str], bool]


def code_that_runs_on_load(
    files: Iterable[ChangedFile],
    loaded: frozenset[str] | None,
    projects: Sequence[str],
    mentioned: Mentioned | None = None,
) -> list[str]:
    """Paths of changed files whose code ran on load, in order.

    Args:
        files: changed files, at least those that `could_run_on_load`.
        loaded, projects: see there.
        mentioned: Without it, whatever is defined counts as used.
    """
    found: set[str] = set()
    left = MOST_PARSED_BYTES
    for file in files:
        deleted = file.read and file.after is None
        if could_run_on_load(file.path, deleted=deleted, loaded=loaded, projects=projects):
            size = len(file.before or b"") + len(file.after or b"")
            left -= size
            parsed = left >= 0 and size <= LONGEST_PARSED_BYTES
            if (
                deleted
                and file.path not in (loaded or ())
                and _is_missed_by_nobody(file, mentioned)
            ):
                continue
            if _is_code(file, parsed=parsed) and not (parsed and _is_unused(file, mentioned)):
                found.add(file.path)
    return sorted(found)


def _is_missed_by_nobody(file: ChangedFile, mentioned: Mentioned | None) -> bool:
    """Whether a module that is gone was one that SQLMesh does not look for and nothing names."""
    path = PurePosixPath(file.path)
    return (
        mentioned is not None
        and _LOOKED_THROUGH.isdisjoint(path.parts)
        and path.stem not in _NAMELESS
        and not mentioned(path.stem, file.path)
    )


def _is_code(file: ChangedFile, *, parsed: bool) -> bool:
    """Whether a file that ran on load is more than data; one that is not parsed is."""
    suffix = PurePosixPath(file.path).suffix.lower()
    if not file.read or not parsed or _REQUIREMENTS.search(file.path):
        return True
    if suffix == ".py":
        return _python(file.before) != _python(file.after)
    if suffix in _TEXTS:
        return _templates(file.before) != _templates(file.after)
    return True


def _is_unused(file: ChangedFile, mentioned: Mentioned | None) -> bool:
    """Whether nothing but definitions of this file ran, which nobody uses before or after."""
    if mentioned is None or file.after is None or not file.path.endswith(".py"):
        return False
    names = [defined(side) for side in (file.before, file.after) if side is not None]
    return all(
        one is not None and not any(mentioned(name, file.path) for name in one) for one in names
    )


def _is_requirement(path: str, projects: Sequence[str]) -> bool:
    """Packages for a project: in its directory, or in one above."""
    if not _REQUIREMENTS.search(path):
        return False
    folder = str(PurePosixPath(path).parent)
    return any(_inside(path, project) or _inside(project, folder) for project in projects)


def _inside(path: str, directory: str) -> bool:
    root = PurePosixPath(directory)
    return str(root) == "." or PurePosixPath(path).is_relative_to(root)


def _python(source: bytes | None) -> str | None:
    """The program without comments, layout and docstrings; the text where it cannot be had."""
    if source is None:
        return None
    try:
        # Bytes and not text: a coding line changes what the program means.
        return ast.dump(_without_docstrings(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Of nesting that is too deep the parser says that it has no memory.
        return source.decode("utf-8", errors="replace")


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def _templates(source: bytes | None) -> list[list[str]]:
    """The Jinja of a file, tag by tag, where it could run something."""
    if source is None:
        return []
    text = source.decode("utf-8", errors="replace")
    if ("{{" not in text and "{%" not in text) or only_writes_text(text):
        return []
    tags: list[list[str]] = []
    inside = False
    try:
        for _, kind, value in _JINJA.lex(text):
            if kind in _TAG_BEGINS:
                tags.append([])
                inside = True
            elif kind in _TAG_ENDS:
                inside = False
            elif inside and kind != "whitespace":
                tags[-1].append(value)
    except TemplateSyntaxError:
        return [[text]]
    return tags
