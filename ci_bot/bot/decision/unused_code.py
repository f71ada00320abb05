"""Python files of which nothing but definitions ran, and whose definitions nobody uses.

A new macro that no model calls is loaded, and its body is not run. Whether that is so is read from
the text alone, because code that did run could answer anything: the file may import and define, and
its names may stand nowhere else in the repository.
"""

from __future__ import annotations

import ast

_MACRO = "macro"
# What an annotation may not do: it is computed where its function is defined.
_RUNS = (
    ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip


def defined(source: bytes) -> frozenset[str] | None:
    """The names that a module defines; None where it may do more when it is imported.

    Imports are no more: what they run is a file that is judged by itself, or a package that is
    installed. Of decorators only SQLMesh's own `macro` is, which enters a function by its name.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names: set[str] = set()
    for node in tree.body:
        found = _function(node) if isinstance(node, ast.FunctionDef) else _inert(node)
        if found is None:
            return None
        names |= found
    used = any(node.decorator_list for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(names) if not used or _macro_is_sqlmeshs(tree) else None


def _inert(node: ast.stmt) -> set[str] | None:
    """No names, for a statement that runs nothing of this file."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return set() if text or isinstance(node, ast.Import | ast.ImportFrom) else None


def _macro_is_sqlmeshs(tree: ast.Module) -> bool:
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


def _function(node: ast.FunctionDef) -> set[str] | None:
    """The names by which a function can be called; None where its definition runs something."""
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
