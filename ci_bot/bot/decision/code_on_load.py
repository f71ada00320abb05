"""Which changed files hold code that ran while the project was loaded.

If such a file changes, the judged code itself computes the report, so a person has to look. It
matters what was loaded, in any place of the repository: the worker reports each file before
anything in it can run (`worker/runtime/load_trace.py`), and requirements count as loaded if this
run has installed them. A changed file among them is no code if it is data: text whose Jinja only
writes text, or Python in which only comments and docstrings have changed. A file that is not known
to be data counts as code: byte code, native modules, archives, pickles, `.pth` and `.env` files.

SQLMesh renders the Jinja of models, macros and configurations outside of a sandbox, and a template
that uses Python's own attributes can run anything. Most templates do not: they call a macro, loop
over names and insert variables. The syntax tree shows whether a template is of that kind, by a list
of what is allowed. What the text that it writes does is judged where the text is parsed, as for
every other model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

# Python files of which only definitions ran, if nobody uses these definitions.
#
# A new macro that no model calls is loaded, but its body does not run. The text alone shows that,
# because code that did run could answer anything: the file may only import and define, and its
# names may appear nowhere else in the repository.


_MACRO = "macro"
# What an annotation must not do, because it is computed when its function is defined.
_RUNS = (
    ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip


def list_names_defined_by_judged_code(source: bytes) -> frozenset[str] | None:
    """Lists the names that a module defines; None if it may do more when it is imported.

    Imports do not count: they run a file that is judged itself, or an installed package. The only
    allowed decorator is SQLMesh's own `macro`, which registers a function by its name.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: set[str] = set()
    for node in tree.body:
        found = (
            _find_names_of_function(node)
            if isinstance(node, ast.FunctionDef)
            else _find_names_of_inert_statement(node)
        )
        if found is None:
            return None
        names |= found
    used = any(node.decorator_list for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(names) if not used or _is_sqlmesh_macro(tree) else None


def _find_names_of_inert_statement(node: ast.stmt) -> set[str] | None:
    """Returns no names for a statement that runs nothing of this file, else None."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return set() if text or isinstance(node, ast.Import | ast.ImportFrom) else None


def _is_sqlmesh_macro(tree: ast.Module) -> bool:
    """Whether `macro` can only be the decorator of SQLMesh."""
    given = [
        (node.module if isinstance(node, ast.ImportFrom) else None, alias.name)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name) in {_MACRO, "*"}
    ]
    own = any(isinstance(node, ast.FunctionDef) and node.name == _MACRO for node in tree.body)
    return given == [("sqlmesh", _MACRO)] and not own


def _find_names_of_function(node: ast.FunctionDef) -> set[str] | None:
    """Finds the names by which a function can be called; None if its definition runs something."""
    names = {node.name}
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Name):
            return None
        given = [*decorator.args, *(keyword.value for keyword in decorator.keywords)]
        constant = all(isinstance(value, ast.Constant) for value in given)
        if decorator.func.id != _MACRO or not constant:
            return None
        names |= {str(value.value) for value in given if isinstance(value, ast.Constant)}
    arguments = node.args
    defaults = [*arguments.defaults, *(value for value in arguments.kw_defaults if value)]
    if not all(isinstance(value, ast.Constant) for value in defaults):
        return None
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    hints = [hint for hint in (*(one.annotation for one in every), node.returns) if hint]
    if any(isinstance(part, _RUNS) for hint in hints for part in ast.walk(hint)):
        return None
    return names


_REQUIREMENTS = re.compile(
    r"(^|/)(requirements[^/]*\.(txt|in)|constraints[^/]*\.txt|pyproject\.toml|setup\.(py|cfg)|"
    r"sqlmesh-requirements\.lock|uv\.lock|poetry\.lock|Pipfile(\.lock)?)$"
)
# Where SQLMesh, or Python at its start, searches for modules without being asked.
_LOOKED_THROUGH = frozenset(
    {"audits", "linter", "macros", "materializations", "metrics", "models", "signals", "tests"}
)

_NAMELESS = frozenset(
    {"__init__", "__main__", "config", "conftest", "sitecustomize", "usercustomize"}
)

# Files with rows, which nobody renders or runs.
_TABLES = frozenset({".csv", ".tsv"})
# Files of text, in which only Jinja is code.
_TEXTS = frozenset({".sql", ".yaml", ".yml", ".md", ".rst", ".txt", ".json", ".jsonl", ".ndjson"})
# Files that are code in any place, for loads about which nothing is known.
_CODE = frozenset(
    {".py", ".pyc", ".pyw", ".pyd", ".so", ".dylib", ".dll", ".zip", ".egg", ".whl", ".pth", ".pkl",
     ".pickle", ".joblib", ".jar", ".sh", ".env", ".sql", ".yaml", ".yml"}
)  # fmt: skip

# Bytes of both sides of one file, and of all files. A change's author decides what is parsed here,
# in a process without limits, and a megabyte of small statements takes half a minute.
LONGEST_PARSED_BYTES = 256 * 1024
MOST_PARSED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class JudgedFile:
    """One file of the diff with both versions; None if a side has no such file.

    `read` is False if the bot could not read the contents; then the file counts as changed code if
    its name allows that.
    """

    path: str
    before: bytes | None
    after: bytes | None
    read: bool = True


def is_possible_risk_of_code_on_load(
    path: str, *, deleted: bool, loaded: frozenset[str] | None, projects: Sequence[str]
) -> bool:
    """Whether only the contents of a changed file decide if it is code that ran on load.

    Args:
        path: relative to the repository.
        deleted: the head has no such file, so it was not opened; but a module that is gone from
            the project changes what runs.
        loaded: the changed files that were opened on load; None if that is unknown.
        projects: the project directories, relative to the repository ("." for its root).
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _TABLES:
        return False
    if deleted:
        return suffix == ".py" and any(_is_file_inside(path, project) for project in projects)
    if loaded is None:
        known = suffix in _CODE or PurePosixPath(path).name == ".env"
        return known or _is_judged_requirement(path, projects)
    return path in loaded


# Whether a word appears in a file of the head other than the one at this path.
Mentioned = Callable[[str, str], bool]


def list_risky_code_on_load(
    files: Iterable[JudgedFile],
    loaded: frozenset[str] | None,
    projects: Sequence[str],
    mentioned: Mentioned | None = None,
) -> list[str]:
    """Lists the paths of changed files whose code ran on load, sorted.

    Args:
        files: changed files, at least those that `is_possible_risk_of_code_on_load`.
        loaded, projects: see there.
        mentioned: Without it, every definition counts as used.
    """
    found: set[str] = set()
    left = MOST_PARSED_BYTES
    for file in files:
        deleted = file.read and file.after is None
        if is_possible_risk_of_code_on_load(
            file.path, deleted=deleted, loaded=loaded, projects=projects
        ):
            size = len(file.before or b"") + len(file.after or b"")
            left -= size
            parsed = left >= 0 and size <= LONGEST_PARSED_BYTES
            if (
                deleted
                and file.path not in (loaded or ())
                and _is_risky_module_missed_by_nobody(file, mentioned)
            ):
                continue
            if _is_risky_code_on_load(file, parsed=parsed) and not (
                parsed and _is_code_unused(file, mentioned)
            ):
                found.add(file.path)
    return sorted(found)


def _is_risky_module_missed_by_nobody(file: JudgedFile, mentioned: Mentioned | None) -> bool:
    """Whether SQLMesh did not look for a deleted module and no file names it."""
    path = PurePosixPath(file.path)
    return (
        mentioned is not None
        and _LOOKED_THROUGH.isdisjoint(path.parts)
        and path.stem not in _NAMELESS
        and not mentioned(path.stem, file.path)
    )


def _is_risky_code_on_load(file: JudgedFile, *, parsed: bool) -> bool:
    """Whether a file that ran on load is more than data; if it is not parsed, it counts as more."""
    suffix = PurePosixPath(file.path).suffix.lower()
    if not file.read or not parsed or _REQUIREMENTS.search(file.path):
        return True
    if suffix == ".py":
        return _normalize_python(file.before) != _normalize_python(file.after)
    if suffix in _TEXTS:
        return _list_risky_template_tags(file.before) != _list_risky_template_tags(file.after)
    return True


def _is_code_unused(file: JudgedFile, mentioned: Mentioned | None) -> bool:
    """Whether only definitions of this file ran, and nobody uses them before or after."""
    if mentioned is None or file.after is None or not file.path.endswith(".py"):
        return False
    names = [
        list_names_defined_by_judged_code(side)
        for side in (file.before, file.after)
        if side is not None
    ]
    return all(
        one is not None and not any(mentioned(name, file.path) for name in one) for one in names
    )


def _is_judged_requirement(path: str, projects: Sequence[str]) -> bool:
    """Whether it is a file of packages for a project: in its directory, or in one above."""
    if not _REQUIREMENTS.search(path):
        return False
    folder = str(PurePosixPath(path).parent)
    return any(
        _is_file_inside(path, project) or _is_file_inside(project, folder) for project in projects
    )


def _is_file_inside(path: str, directory: str) -> bool:
    root = PurePosixPath(directory)
    return str(root) == "." or PurePosixPath(path).is_relative_to(root)


def _normalize_python(source: bytes | None) -> str | None:
    """Returns the program without comments, layout and docstrings; if it is invalid, the text."""
    if source is None:
        return None
    try:
        # Bytes, not text: a coding line changes what the program means.
        return ast.dump(_drop_docstrings(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The parser raises MemoryError if the nesting is too deep.
        return source.decode("utf-8", errors="replace")


def _drop_docstrings(tree: ast.Module) -> ast.Module:
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


def _list_risky_template_tags(source: bytes | None) -> list[list[str]]:
    """Lists the Jinja tags of a file, if they could run something."""
    if source is None:
        return []
    text = source.decode("utf-8", errors="replace")
    if "{{" not in text and "{%" not in text:
        return []
    # Few pull requests change a template, and Jinja's import would make every worker start later.
    from ci_bot.bot.decision.template_tags import is_jinja_template_harmless, list_template_tags

    return [] if is_jinja_template_harmless(text) else list_template_tags(text)
