"""Where the trees of SQL differ between the parsers (sqlglot) that versions of SQLMesh bring.

A clause that is asked for by a name that the parser does not use is no error: it is not there, and
a rule would take a query for one that reads nothing. So nobody else writes these names.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp


def argument(kind: type[Any], name: str) -> str:
    """How the installed parser calls an argument that is a word of Python's: with an underscore
    since sqlglot 28, without before. (`arg_types`)

    Raises:
        KeyError: with neither; another release of sqlglot has renamed it.
    """
    for spelled in (f"{name}_", name):
        if spelled in kind.arg_types:
            return spelled
    raise KeyError(f"{kind.__name__}.{name}")


def known_classes(names: str) -> tuple[type, ...]:
    """The classes of trees by these names, blanks between; without those that the installed parser
    does not have. It reads such a function as one that it does not know (`exp.Anonymous`)."""
    found = (getattr(exp, name, None) for name in names.split())
    return tuple(one for one in found if one is not None)


FROM = argument(exp.Select, "from")
WITH = argument(exp.Select, "with")
EXCEPT = argument(exp.Star, "except")
# What every tree is; sqlglot 30 has parts of trees that are no `Expression`.
Tree: type[Any] = getattr(exp, "Expr", exp.Expression)
