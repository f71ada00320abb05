"""Edits of one query: some that may change its result, and some that may not."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import sqlglot
from sqlglot import exp


def edited(query: str, random: Random) -> str | None:
    """The query with one thing changed; None where nothing of the chosen kind is in it.

    An edited recursion may never end, so those are left alone.
    """
    if "RECURSIVE" in query:
        return None
    tree = sqlglot.parse_one(query, dialect="duckdb")
    return tree.sql(dialect="duckdb") if random.choice(_EDITS)(tree, random) else None


def reworded(query: str, random: Random) -> str | None:
    """The query with other names or another order of operands: its result stays."""
    tree = sqlglot.parse_one(query, dialect="duckdb")
    return tree.sql(dialect="duckdb") if random.choice(_REWORDINGS)(tree, random) else None


def _chosen(tree: Any, random: Random, *types: type) -> Any:
    found = list(tree.find_all(*types))
    return random.choice(found) if found else None


def _number(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Literal)
    if node is None or node.is_string:
        return False
    node.set("this", str(int(node.this) + random.randint(1, 2)))
    return not isinstance(node.parent, exp.Group | exp.Ordered)


def _column(tree: Any, random: Random) -> bool:
    """Another column of the same query, perhaps of another source."""
    node, other = _chosen(tree, random, exp.Column), _chosen(tree, random, exp.Column)
    if node is None or node == other or node.find_ancestor(exp.Star):
        return False
    node.replace(other.copy())
    return True


def _comparison(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.GT, exp.EQ, exp.LTE, exp.Mod)
    if node is None:
        return False
    kinds = {exp.GT: exp.GTE, exp.EQ: exp.NEQ, exp.LTE: exp.LT, exp.Mod: exp.Add}
    node.replace(kinds[type(node)](this=node.this.copy(), expression=node.expression.copy()))
    return True


def _sides(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Sub, exp.GT, exp.Add, exp.EQ)
    if node is None:
        return False
    left, right = node.this.copy(), node.expression.copy()
    node.set("this", right)
    node.set("expression", left)
    return True


def _join(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Join)
    if node is None or not node.args.get("on") or node.args.get("kind") in ("SEMI", "ANTI"):
        return False
    node.set("side", None if node.args.get("side") else "LEFT")
    return True


def _filter(tree: Any, random: Random) -> bool:
    select = _chosen(tree, random, exp.Select)
    if select.args.get("where"):
        select.set("where", None)
        return True
    column = _chosen(select, random, exp.Column)
    if column is None or select.find(exp.Select) is not select:
        return False
    select.where(exp.column(column.name, column.table).is_(exp.null()).not_(), copy=False)
    return True


def _distinct(tree: Any, random: Random) -> bool:
    select = _chosen(tree, random, exp.Select)
    select.set("distinct", None if select.args.get("distinct") else exp.Distinct())
    return True


def _union(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Union)
    if node is None:
        return False
    node.set("distinct", not node.args.get("distinct"))
    return True


def _aggregate(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Max, exp.Sum, exp.Count)
    if node is None or isinstance(node.this, exp.Star | exp.Distinct):
        return False
    kind = random.choice([exp.Max, exp.Min, exp.Count])
    node.replace(kind(this=node.this.copy()))
    return True


def _projection(tree: Any, random: Random) -> bool:
    """One column less, or one more."""
    select = _chosen(tree, random, exp.Select)
    if len(select.expressions) > 1 and random.random() < 0.5:
        select.expressions.pop(random.randrange(len(select.expressions)))
        return True
    select.select("7 AS seven", copy=False)
    return True


def _order(tree: Any, random: Random) -> bool:
    """Two columns change places."""
    items = _outermost(tree).expressions
    if len(items) < 2:
        return False
    one, other = random.sample(range(len(items)), 2)
    items[one], items[other] = items[other], items[one]
    return True


def _name(tree: Any, random: Random) -> bool:
    """A column is called otherwise."""
    items = _outermost(tree).expressions
    place = random.randrange(len(items))
    if not items[place].output_name:
        return False
    items[place] = exp.alias_(items[place].unalias(), "other_name")
    return True


def _outermost(tree: Any) -> Any:
    while isinstance(tree, exp.SetOperation):
        tree = tree.this
    return tree


def _table(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.Table)
    names = ["one", "two", "three"]
    if node is None or node.db != "s":
        return False
    names.remove(node.name)
    node.set("this", exp.to_identifier(random.choice(names)))
    return True


def _swapped_sources(tree: Any, random: Random) -> bool:
    """Two columns change places: what a self-join is easily wrong about."""
    found = [node for node in tree.find_all(exp.Column) if not node.find_ancestor(exp.Star)]
    if len(found) < 2:
        return False
    one, two = random.sample(found, 2)
    first, second = one.args.get("table"), two.args.get("table")
    one.set("table", second)
    two.set("table", first)
    return True


def _renamed_sources(tree: Any, random: Random) -> bool:
    # Names are the same in whatever letters they are written, also between quotes.
    names = {
        alias.name.lower(): f"other_{alias.name}"
        for alias in tree.find_all(exp.TableAlias)
        if alias.name and alias.name.lower() != "steps"
    }
    for node in tree.find_all(exp.Column):
        # A field of a struct is parsed as if its source were a schema or a catalog, and a whole
        # row, which is taken of t1, t2 and their like alone, as a column.
        place = next(part for part in ("catalog", "db", "table", "this") if node.text(part))
        name = node.text(place).lower()
        if name in names and (place != "this" or node.name[0] == "t"):
            node.set(place, exp.to_identifier(names[name]))
    for node in tree.find_all(exp.Table):
        if not node.db and node.name.lower() in names:
            node.set("this", exp.to_identifier(names[node.name.lower()]))
    for alias in tree.find_all(exp.TableAlias):
        if alias.name.lower() in names:
            alias.set("this", exp.to_identifier(names[alias.name.lower()]))
    return bool(names)


def _turned(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.EQ, exp.And)
    return node is not None and _sides_of(node)


def _greater(tree: Any, random: Random) -> bool:
    node = _chosen(tree, random, exp.GT)
    if node is None:
        return False
    node.replace(exp.LT(this=node.expression.copy(), expression=node.this.copy()))
    return True


def _sides_of(node: Any) -> bool:
    left, right = node.this.copy(), node.expression.copy()
    node.set("this", right)
    node.set("expression", left)
    return True


_EDITS: list[Callable[[Any, Random], bool]] = [
    _number,
    _column,
    _column,
    _comparison,
    _sides,
    _join,
    _filter,
    _distinct,
    _union,
    _aggregate,
    _projection,
    _order,
    _name,
    _table,
    _swapped_sources,
    _swapped_sources,
]
_REWORDINGS: list[Callable[[Any, Random], bool]] = [_renamed_sources, _turned, _greater]
