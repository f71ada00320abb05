"""Columns that GROUP BY and ORDER BY name by their position, such as `ORDER BY 2`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ci_bot.worker.sql.model_query import ModelQuery


@dataclass(frozen=True)
class ClauseKey:
    """A key of GROUP BY or ORDER BY.

    Attributes:
        position: the written position, from 1; None if the key is no position.
        name: the column of the key, by its name in the result.
        expression: the computation of that column, without the names of tables.
        direction: for ORDER BY, DESC and the order of NULLs, if they are not the default.
    """

    position: int | None
    name: str
    expression: str
    direction: str

    def means_same_column(self, other: ClauseKey) -> bool:
        """Whether both mean one column: at most its name or its computation differs."""
        return self.direction == other.direction and (
            self.expression == other.expression or self.name == other.name
        )


def pair_clause_queries(
    before: ModelQuery, after: ModelQuery, clause: str
) -> Iterator[tuple[exp.Query, exp.Query]]:
    """Pairs the queries that have the clause (`group` or `order`), before and after, in order.

    Positions refer to the written columns; if a star comes before one, to the columns that SQLMesh
    puts in its place. There are no pairs if a query came or went, because their order is then
    unclear.
    """
    for form in ("rendered_as_written", "rendered_query"):
        sides = [
            _list_queries_with_clause(getattr(query, form), clause) for query in (before, after)
        ]
        if len(sides[0]) != len(sides[1]):
            return
        hidden = any(_is_behind_star(query, clause) for side in sides for query in side)
        if not hidden:
            yield from zip(*sides, strict=True)
            return


def list_clause_keys(query: exp.Query, clause: str) -> list[ClauseKey]:
    """The keys of a query's GROUP BY or ORDER BY that depend on its rows."""
    keys = [_read_clause_key(query, key) for key in query.args[clause].expressions]
    return [key for key in keys if key is not None]


def describe_moved_positions(
    before: Sequence[ClauseKey], after: Sequence[ClauseKey], clause: str
) -> list[str]:
    """Describes each position that is written on both sides and means different columns."""
    old = {key.position: key for key in before if key.position is not None}
    return [
        f"`{key.position}` in {clause} now means `{key.name}`, no longer `{was.name}`"
        for key in after
        if key.position is not None
        and (was := old.get(key.position)) is not None
        and not was.means_same_column(key)
    ]


def render_expression_text(node: exp.Expr) -> str:
    """Renders an expression without its alias, names of tables, and quotes."""
    bare = node.unalias().copy()
    for column in bare.find_all(exp.Column):
        for part in ("table", "db", "catalog"):
            column.set(part, None)
    for identifier in bare.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return str(bare.sql(dialect="spark", comments=False)).lower()


def _list_queries_with_clause(tree: exp.Expr, clause: str) -> list[exp.Query]:
    if not isinstance(tree, exp.Query):
        return []
    return [query for query in tree.find_all(exp.Query) if query.args.get(clause) is not None]


def _parse_position(key: exp.Expr) -> int | None:
    inner = key.this if isinstance(key, exp.Ordered) else key
    is_position = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()
    return int(inner.name) if is_position else None


def _is_behind_star(query: exp.Query, clause: str) -> bool:
    highest = max((_parse_position(key) or 0 for key in query.args[clause].expressions), default=0)
    return any(item.is_star for item in query.selects[:highest])


def _read_clause_key(query: exp.Query, key: exp.Expr) -> ClauseKey | None:
    position, items = _parse_position(key), query.selects
    node = key.this if isinstance(key, exp.Ordered) else key
    if position is not None:
        if not 1 <= position <= len(items):
            return None
        node = items[position - 1]
    elif isinstance(node, exp.Column) and not node.table:
        name = node.name.lower()
        node = next((item for item in items if item.alias_or_name.lower() == name), node)
    inner = node.unalias()
    if position is None and inner.find(exp.Column, exp.AggFunc) is None:
        return None  # a constant does not sort
    expression = render_expression_text(node)
    named = next((item for item in items if render_expression_text(item) == expression), node)
    name = (named.alias_or_name or expression).lower()
    direction = ""
    if isinstance(key, exp.Ordered):
        is_first, descends = bool(key.args.get("nulls_first")), bool(key.args.get("desc"))
        direction = f"{' DESC' if descends else ''}"
        if is_first == descends:
            direction += f" NULLS {'FIRST' if is_first else 'LAST'}"
    return ClauseKey(position, name, expression, direction)
