"""Which parts of a parsed text SQLMesh hands to Python when it evaluates the macros in it.

`MacroEvaluator.eval_expression` is the one place where Python is made of SQL. Of its own macros,
SQLMesh hands over the condition of `@IF`, `@WITH`, `@JOIN`, `@WHERE`, `@GROUP_BY`, `@HAVING`,
`@ORDER_BY` and `@LIMIT`, and no argument of `@AND`, `@OR`, `@EACH` and `@REDUCE`: what these get
beside is SQL that comes out again (`core/macros.py`). All that stands in an argument that is
evaluated is evaluated with it, macros too. Of any other macro, a project's own above all, each
argument counts as evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlmesh.core import dialect as d

_ONLY_THE_CONDITION = frozenset(
    {"IF", "WITH", "JOIN", "WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT"}
)
_NOTHING = frozenset({"AND", "OR"})
_BY_A_LAMBDA = frozenset({"EACH", "REDUCE"})


def list_evaluated(root: Any, *, own_macros: bool = False) -> Iterator[Any]:
    """The largest parts of a tree that become Python, whole.

    Args:
        root: What SQLMesh's parser made of a text.
        own_macros: Whether the text defines macros, which may bear any name.
    """
    todo = [root]
    while todo:
        part = todo.pop()
        if not isinstance(part, d.MacroFunc):
            todo += reversed(list(part.iter_expressions()))
            continue
        arguments = part.this.expressions if isinstance(part.this, exp.Anonymous) else None
        if arguments is None:
            yield part
            continue
        yield _call_alone(part)
        count = len(arguments)
        if not own_macros:
            count = _count_of_evaluated(part.this.name.upper(), arguments)
        yield from arguments[:count]
        todo += reversed(arguments[count:])


def _call_alone(macro: Any) -> Any:
    """A macro without its arguments: its name lands in Python where it is an argument itself."""
    name = macro.this.this
    return d.MacroFunc(this=exp.Anonymous(this=name if isinstance(name, str) else name.copy()))


def _count_of_evaluated(name: str, arguments: list[Any]) -> int:
    """How many of a macro's arguments are evaluated, from the first one on."""
    if any(isinstance(argument, exp.PropertyEQ) for argument in arguments):
        return len(arguments)
    if name in _NOTHING:
        return 0
    if name in _ONLY_THE_CONDITION and arguments:
        # A macro that stands for the condition may come to nothing, and the next one moves up.
        return len(arguments) if isinstance(arguments[0], d.MacroFunc) else 1
    if name in _BY_A_LAMBDA and arguments and isinstance(arguments[-1], exp.Lambda):
        # A macro in the lambda gets what the lambda is called with.
        runs_others = any(argument.find(d.MacroFunc) for argument in arguments)
        return len(arguments) if runs_others else 0
    return len(arguments)
