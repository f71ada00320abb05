"""Where in a query something stands, in words that a renamed alias or CTE leaves as they are."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from ci_bot.worker.rules.sql.queries import Query, outer


def place_of(node: Any, query: Query) -> str:
    """The result column or the clause that a node of one of its trees or scopes is a part of."""
    below, above = node, node.parent
    while above is not None and not isinstance(above, exp.Select):
        below, above = above, above.parent
    if above is None:
        return "the query"
    top = above.parent is None or any(
        above is scope.expression
        for root in (query.root, query.written_root)
        for scope in outer(root)
    )
    if below.arg_key == "expressions":
        return f"column {below.alias_or_name}" if top else "a column of a subquery"
    clause = str(below.arg_key).strip("_").upper()
    return clause if top else f"{clause} of a subquery"
