"""Which changed files hold code that ran while the project was loaded.

A report is computed by the code that it judges if such a file changes, so a person has to look.
What was loaded decides, wherever in the repository it lies: the worker tells each file before
anything in it can run (`worker/runtime/load_trace.py`), and requirements count as loaded where this
run has installed them. Of the changed ones among them, data is no code: text whose Jinja only
writes text, and Python whose comments and docstrings alone have changed. What is not known to be
data counts as code: byte code, native modules, archives, pickles, `.pth` and `.env` files.

SQLMesh renders the Jinja of models, macros and configurations outside of a sandbox, and a template
that reaches for Python's own attributes runs whatever it likes. Most templates do not: they call a
macro, loop over names and put in variables. Whether one is of that kind is read from its syntax
tree, by a list of what is allowed. What the text that it writes does is judged where the text is
parsed, as for every other model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.sandbox import (
    UNSAFE_ASYNC_GENERATOR_ATTRIBUTES,
    UNSAFE_COROUTINE_ATTRIBUTES,
    UNSAFE_FUNCTION_ATTRIBUTES,
    UNSAFE_GENERATOR_ATTRIBUTES,
    UNSAFE_METHOD_ATTRIBUTES,
)

# Python files of which nothing but definitions ran, and whose definitions nobody uses.
#
# A new macro that no model calls is loaded, and its body is not run. Whether that is so is read
# from the text alone, because code that did run could answer anything: the file may import and
# define, and its names may stand nowhere else in the repository.


_MACRO = "macro"
# What an annotation may not do: it is computed where its function is defined.
_RUNS = (
    ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip


def list_defined_names(source: bytes) -> frozenset[str] | None:
    """The names that a module defines; None if it may do more when it is imported.

    Imports are no more: what they run is a file that is judged by itself, or a package that is
    installed. Of decorators only SQLMesh's own `macro` is, which enters a function by its name.
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
    """No names, for a statement that runs nothing of this file."""
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
    """The names by which a function can be called; None if its definition runs something."""
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
# Where SQLMesh, or Python at its start, looks for modules by itself.
_LOOKED_THROUGH = frozenset(
    {"audits", "linter", "macros", "materializations", "metrics", "models", "signals", "tests"}
)

_NAMELESS = frozenset(
    {"__init__", "__main__", "config", "conftest", "sitecustomize", "usercustomize"}
)

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
    """One file of the diff with both versions; None if a side has no such file.

    `read` is False if the bot could not read the contents; such a file counts as changed code
    whenever its name allows it.
    """

    path: str
    before: bytes | None
    after: bytes | None
    read: bool = True


def is_possible_code_on_load(
    path: str, *, deleted: bool, loaded: frozenset[str] | None, projects: Sequence[str]
) -> bool:
    """Whether the contents of a changed file decide if it is code that ran on load.

    Args:
        path: relative to the repository.
        deleted: the head has no such file, so it cannot have been opened; a module of the project
            that is gone changes what runs anyway.
        loaded: the changed files that were opened on load; None if that is not known.
        projects: the project directories, relative to the repository ("." for its root).
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _TABLES:
        return False
    if deleted:
        return suffix == ".py" and any(_is_inside(path, project) for project in projects)
    if loaded is None:
        known = suffix in _CODE or PurePosixPath(path).name == ".env"
        return known or _is_requirement(path, projects)
    return path in loaded


# Whether a word stands in any other file of the head than the one of this path.
Mentioned = Callable[[str, str], bool]


def list_code_on_load(
    files: Iterable[ChangedFile],
    loaded: frozenset[str] | None,
    projects: Sequence[str],
    mentioned: Mentioned | None = None,
) -> list[str]:
    """Paths of changed files whose code ran on load, in order.

    Args:
        files: changed files, at least those that `is_possible_code_on_load`.
        loaded, projects: see there.
        mentioned: Without it, whatever is defined counts as used.
    """
    found: set[str] = set()
    left = MOST_PARSED_BYTES
    for file in files:
        deleted = file.read and file.after is None
        if is_possible_code_on_load(file.path, deleted=deleted, loaded=loaded, projects=projects):
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
        return _normalize_python(file.before) != _normalize_python(file.after)
    if suffix in _TEXTS:
        return _list_template_tags(file.before) != _list_template_tags(file.after)
    return True


def _is_unused(file: ChangedFile, mentioned: Mentioned | None) -> bool:
    """Whether only definitions of this file ran, which nobody uses before or after."""
    if mentioned is None or file.after is None or not file.path.endswith(".py"):
        return False
    names = [list_defined_names(side) for side in (file.before, file.after) if side is not None]
    return all(
        one is not None and not any(mentioned(name, file.path) for name in one) for one in names
    )


def _is_requirement(path: str, projects: Sequence[str]) -> bool:
    """Packages for a project: in its directory, or in one above."""
    if not _REQUIREMENTS.search(path):
        return False
    folder = str(PurePosixPath(path).parent)
    return any(_is_inside(path, project) or _is_inside(project, folder) for project in projects)


def _is_inside(path: str, directory: str) -> bool:
    root = PurePosixPath(directory)
    return str(root) == "." or PurePosixPath(path).is_relative_to(root)


def _normalize_python(source: bytes | None) -> str | None:
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


def _list_template_tags(source: bytes | None) -> list[list[str]]:
    """The Jinja of a file, tag by tag, where it could run something."""
    if source is None:
        return []
    text = source.decode("utf-8", errors="replace")
    if "{{" not in text and "{%" not in text:
        return []
    # Few pull requests change a template, and Jinja's import would make every worker start later.

    return [] if is_text_only_template(text) else list_template_tags(text)


# With the statements that SQLMesh's own environment has.
_ENVIRONMENT = Environment(autoescape=True, extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"])

_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Const, nodes.Name, nodes.NSRef,
    nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Call, nodes.Keyword, nodes.Filter, nodes.Test,
    nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr, nodes.Concat, nodes.CondExpr,
    nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.If, nodes.For, nodes.Assign,
    nodes.AssignBlock, nodes.Macro, nodes.CallBlock, nodes.ExprStmt, nodes.Break, nodes.Continue,
)  # fmt: skip
# Those that take no name of an attribute to look up.
_FILTERS = frozenset(
    {"abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "indent", "int",
     "items", "last", "length", "list", "lower", "replace", "reverse", "round", "safe", "string",
     "title", "tojson", "trim", "upper", "as_bool", "as_number", "as_text"}
)  # fmt: skip

_FILTERS_WITHOUT_ATTRIBUTES = frozenset({"join", "max", "min", "sort", "sum", "unique"})
# The objects of dbt through which a template reaches the engine, the context or Python's modules.
_OBJECTS = frozenset(
    {"adapter", "api", "builtins", "context", "dbt", "engine_adapter", "exceptions", "graph",
     "load_result", "model", "modules", "run_query", "self", "statement", "store_raw_result",
     "store_result"}
)  # fmt: skip
# What Jinja's own sandbox refuses beside names that begin with an underscore; and the methods of a
# text that look attributes up by themselves.
_ATTRIBUTES = frozenset(
    UNSAFE_ASYNC_GENERATOR_ATTRIBUTES
    | UNSAFE_COROUTINE_ATTRIBUTES
    | UNSAFE_FUNCTION_ATTRIBUTES
    | UNSAFE_GENERATOR_ATTRIBUTES
    | UNSAFE_METHOD_ATTRIBUTES
    | {"mro", "format", "format_map", "tb_frame", "f_globals", "f_builtins", "f_locals"}
)


_LEXER = Environment(autoescape=True)

_TAG_BEGINS = frozenset({"variable_begin", "block_begin"})

_TAG_ENDS = frozenset({"variable_end", "block_end"})


def list_template_tags(template: str) -> list[list[str]]:
    """The words of each tag; all of a text that cannot be read is one."""
    tags: list[list[str]] = []
    inside = False
    try:
        for _, kind, value in _LEXER.lex(template):
            if kind in _TAG_BEGINS:
                tags.append([])
                inside = True
            elif kind in _TAG_ENDS:
                inside = False
            elif inside and kind != "whitespace":
                tags[-1].append(value)
    except TemplateSyntaxError:
        return [[template]]
    return tags


def is_text_only_template(template: str) -> bool:
    """Whether nothing in a template can run more than macros and functions that are there.

    A template that cannot be parsed, and one that holds what this list does not know, is not.
    """
    try:
        tree = _ENVIRONMENT.parse(template)
        return all(_is_harmless(node) for node in [tree, *tree.find_all(nodes.Node)])
    except (TemplateSyntaxError, RecursionError, MemoryError, ValueError):
        return False


def _is_harmless(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Name):
        return node.name not in _OBJECTS and not node.name.startswith("_")
    if isinstance(node, nodes.NSRef | nodes.Getattr):
        return _may_be_read(node.attr)
    if isinstance(node, nodes.Getitem):
        return _may_be_looked_up(node.arg)
    if isinstance(node, nodes.Filter):
        given = len(node.args) + len(node.kwargs)
        return node.name in _FILTERS or (
            # The first argument of `join` stands between its parts; the others' are attributes.
            node.name in _FILTERS_WITHOUT_ATTRIBUTES
            and not node.kwargs
            and given <= (1 if node.name == "join" else 0)
        )
    if isinstance(node, nodes.Call | nodes.Test):
        return node.dyn_args is None and node.dyn_kwargs is None
    return isinstance(node, _NODES)


def _may_be_read(name: str) -> bool:
    return not name.startswith("_") and name not in _ATTRIBUTES


def _may_be_looked_up(key: nodes.Node) -> bool:
    """What is no item is looked up as an attribute, so only known keys are harmless."""
    if isinstance(key, nodes.Slice):
        return True
    if isinstance(key, nodes.Neg):
        key = key.node
    if not isinstance(key, nodes.Const):
        return False
    return _may_be_read(key.value) if isinstance(key.value, str) else isinstance(key.value, int)
