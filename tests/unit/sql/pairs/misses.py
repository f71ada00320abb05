"""Near misses of rewrites: one small change each, which gives other rows on some data, as a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat.models_and_trees import FROM
from tests.unit.sql.pairs.bases import NUMBERS, TABLES, parse
from tests.unit.sql.pairs.rewriting import conjuncts, is_inner, joined, joins_of, selects, way_of

Miss = Callable[[Any, Random], Any]


def _one(random: Random, items: list[Any]) -> Any:
    return random.choice(items) if items else None


def _columns(tree: Any) -> list[Any]:
    return [c for c in tree.find_all(exp.Column) if c.name in NUMBERS and c.table]


def _in_reach(column: Any) -> list[str]:
    """The aliases that a column could be asked of, here or around a subquery."""
    found: list[str] = []
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = [select.args[FROM].this, *(join.this for join in joins_of(select))]
        found += [source.alias for source in sources if source.alias]
        inside = isinstance(select.parent, exp.Exists) or select.find_ancestor(exp.In) is not None
        select = select.find_ancestor(exp.Select) if inside else None
    return found


def other_occurrence(tree: Any, random: Random) -> Any:
    """A column is asked of another source that is in reach."""
    found = [c for c in _columns(tree) if len(set(_in_reach(c))) > 1]
    chosen = _one(random, found)
    if chosen is None:
        return None
    others = [alias for alias in _in_reach(chosen) if alias != chosen.table]
    chosen.set("table", exp.to_identifier(random.choice(others)))
    return tree


def exchanged_occurrences(tree: Any, random: Random) -> Any:
    """In one clause two aliases change places."""
    clauses = [n for n in tree.find_all(exp.Where, exp.Alias, exp.Join) if len(_tables(n)) > 1]
    chosen = _one(random, clauses)
    if chosen is None:
        return None
    one, other = random.sample(sorted(_tables(chosen)), 2)
    for column in chosen.find_all(exp.Column):
        if column.table in {one, other}:
            column.set("table", exp.to_identifier(other if column.table == one else one))
    return tree


def _tables(node: Any) -> set[str]:
    return {column.table for column in node.find_all(exp.Column) if column.table}


def other_column(tree: Any, random: Random) -> Any:
    chosen = _one(random, _columns(tree))
    if chosen is None:
        return None
    chosen.set("this", exp.to_identifier(random.choice([n for n in NUMBERS if n != chosen.name])))
    return tree


def other_sign(tree: Any, random: Random) -> Any:
    signs = [exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE]
    chosen = _one(random, list(tree.find_all(*signs)))
    if chosen is None:
        return None
    kind = random.choice([sign for sign in signs if sign is not type(chosen)])
    chosen.replace(kind(this=chosen.this.copy(), expression=chosen.expression.copy()))
    return tree


def exchanged_sides(tree: Any, random: Random) -> Any:
    """Operands of what is not commutative."""
    kinds = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Sub, exp.Nullif)
    chosen = _one(random, list(tree.find_all(*kinds)))
    if chosen is None:
        return None
    left, right = chosen.this.copy(), chosen.expression.copy()
    chosen.set("this", right)
    chosen.set("expression", left)
    return tree


def other_number(tree: Any, random: Random) -> Any:
    found = [n for n in tree.find_all(exp.Literal) if not n.is_string]
    chosen = _one(random, found)
    if chosen is None:
        return None
    chosen.replace(exp.Literal.number(int(chosen.this) + 1))
    return tree


def other_case(tree: Any, random: Random) -> Any:
    found = [n for n in tree.find_all(exp.Literal) if n.is_string and n.this.swapcase() != n.this]
    chosen = _one(random, found)
    if chosen is None:
        return None
    chosen.replace(exp.Literal.string(chosen.this.swapcase()))
    return tree


def and_or(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.And, exp.Or)))
    if chosen is None:
        return None
    kind = exp.Or if isinstance(chosen, exp.And) else exp.And
    made = kind(this=exp.paren(chosen.this.copy()), expression=exp.paren(chosen.expression.copy()))
    chosen.replace(exp.paren(made))
    return tree


def dropped_condition(tree: Any, random: Random) -> Any:
    found = [select for select in selects(tree) if select.args.get("where")]
    chosen = _one(random, found)
    if chosen is None:
        return None
    parts = conjuncts(chosen.args["where"].this)
    parts.remove(random.choice(parts))
    chosen.set("where", exp.Where(this=joined(parts)) if parts else None)
    return tree


def dropped_not(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.Not)))
    if chosen is None:
        return None
    chosen.replace(chosen.this.copy())
    return tree


def other_join(tree: Any, random: Random) -> Any:
    found = [join for join in tree.find_all(exp.Join) if join.args.get("on")]
    chosen = _one(random, found)
    if chosen is None:
        return None
    ways = {"": ("", ""), "LEFT": ("LEFT", ""), "RIGHT": ("RIGHT", ""), "FULL": ("FULL", "")}
    if chosen.kind in {"SEMI", "ANTI"}:
        chosen.set("kind", "ANTI" if chosen.kind == "SEMI" else "SEMI")
        return tree
    side, _ = random.choice([told for way, told in ways.items() if way != way_of(chosen)])
    chosen.set("side", side or None)
    return tree


def moved_condition(tree: Any, random: Random) -> Any:
    """Between ON of an outer join and WHERE."""
    found = [
        (select, join)
        for select in selects(tree)
        for join in joins_of(select)
        if join.args.get("on") and not is_inner(join) and join.kind not in {"SEMI", "ANTI"}
    ]
    chosen = _one(random, found)
    if chosen is None:
        return None
    select, join = chosen
    where = select.args.get("where")
    if where is not None and random.random() < 0.5:
        parts = conjuncts(where.this)
        part = random.choice(parts)
        parts.remove(part)
        select.set("where", exp.Where(this=joined(parts)) if parts else None)
        join.set("on", joined([join.args["on"], part]))
        return tree
    parts = conjuncts(join.args["on"])
    part = random.choice(parts)
    parts.remove(part)
    join.set("on", joined(parts) if parts else exp.true())
    return select.where(part.copy(), copy=False) and tree


def other_total(tree: Any, random: Random) -> Any:
    kinds = [exp.Sum, exp.Min, exp.Max]
    chosen = _one(random, list(tree.find_all(*kinds)))
    if chosen is None:
        return None
    kind = random.choice([kind for kind in kinds if kind is not type(chosen)])
    chosen.replace(kind(this=chosen.this.copy()))
    return tree


def other_count(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.Count)))
    if chosen is None:
        return None
    inner = chosen.this
    if isinstance(inner, exp.Distinct):
        chosen.set("this", inner.expressions[0].copy())
    else:
        chosen.set("this", exp.Star() if not isinstance(inner, exp.Star) else exp.null())
    return tree


def distinct(tree: Any, random: Random) -> Any:
    found = [select for select in selects(tree) if not select.args.get("group")]
    chosen = _one(random, found)
    if chosen is None:
        return None
    chosen.set("distinct", None if chosen.args.get("distinct") else exp.Distinct())
    return tree


def other_group(tree: Any, random: Random) -> Any:
    found = [s for s in selects(tree) if s.args.get("group") and not s.args.get("distinct")]
    chosen = _one(random, found)
    if chosen is None:
        return None
    alias = chosen.args[FROM].this.alias
    column = parse(f"SELECT {alias}.{random.choice(NUMBERS)}").expressions[0]
    chosen.args["group"].append("expressions", column)
    return tree


def other_set(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.SetOperation)))
    if chosen is None:
        return None
    if isinstance(chosen, exp.Union) and random.random() < 0.5:
        chosen.set("distinct", not chosen.args.get("distinct"))
    else:
        left, right = chosen.this.copy(), chosen.expression.copy()
        kind = random.choice([exp.Except, exp.Intersect])
        chosen.replace(kind(this=right, expression=left, distinct=True))
    return tree


def exchanged_results(tree: Any, random: Random) -> Any:
    """Two results of one SELECT change their names, or their places in a branch."""
    found = [select for select in selects(tree) if len(select.expressions) > 1]
    chosen = _one(random, found)
    if chosen is None:
        return None
    one, other = random.sample(chosen.expressions, 2)
    first, second = one.unalias().copy(), other.unalias().copy()
    names = one.alias_or_name, other.alias_or_name
    one.replace(exp.alias_(second, names[0]))
    other.replace(exp.alias_(first, names[1]))
    return tree


def other_window(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.Window)))
    if chosen is None:
        return None
    if random.random() < 0.5 and chosen.args.get("partition_by"):
        chosen.set("partition_by", chosen.args["partition_by"][:1])
    elif chosen.args.get("order") is not None:
        (ordered,) = chosen.args["order"].expressions
        ordered.set("desc", not ordered.args.get("desc"))
    return tree


def other_limit(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.Limit)))
    if chosen is None:
        return None
    if random.random() < 0.5:
        chosen.set("expression", exp.Literal.number(2))
    else:
        for ordered in chosen.parent.args["order"].expressions:
            ordered.set("desc", not ordered.args.get("desc"))
    return tree


def filter_past(tree: Any, random: Random) -> Any:
    """A filter moves from outside of a query into it, past whatever that does."""
    found = []
    for select in selects(tree):
        source = select.args[FROM].this
        where = select.args.get("where")
        if where is None or not isinstance(source, exp.Subquery):
            continue
        if not isinstance(source.this, exp.Select) or source.this.args[FROM].this.alias == "":
            continue
        for part in conjuncts(where.this):
            if _tables(part) == {source.alias} and not part.find(exp.Query):
                found.append((select, source, part))
    chosen = _one(random, found)
    if chosen is None:
        return None
    select, source, part = chosen
    rest = [other for other in conjuncts(select.args["where"].this) if other is not part]
    inside = part.copy()
    for column in inside.find_all(exp.Column):
        column.set("table", exp.to_identifier(source.this.args[FROM].this.alias))
    select.set("where", exp.Where(this=joined(rest)) if rest else None)
    source.this.where(inside, copy=False)
    return tree


def other_table(tree: Any, random: Random) -> Any:
    chosen = _one(random, [t for t in tree.find_all(exp.Table) if t.db])
    if chosen is None:
        return None
    others = [t for t in TABLES if t != f"{chosen.db}.{chosen.name}"]
    chosen.set("this", exp.to_identifier(random.choice(others).partition(".")[2]))
    return tree


def not_in_as_not_exists(tree: Any, random: Random) -> Any:
    found = [n for n in tree.find_all(exp.In) if n.args.get("query") is not None]
    chosen = _one(random, found)
    if chosen is None:
        return None
    query = chosen.args["query"].unnest().copy()
    query.where(
        exp.EQ(this=query.expressions[0].unalias().copy(), expression=chosen.this.copy()),
        copy=False,
    )
    chosen.replace(exp.Exists(this=query))
    return tree


def dropped_default(tree: Any, random: Random) -> Any:
    chosen = _one(random, list(tree.find_all(exp.Coalesce)))
    if chosen is None:
        return None
    chosen.replace(chosen.this.copy())
    return tree


def other_branch(tree: Any, random: Random) -> Any:
    """The branches of a CASE or an IF change places."""
    chosen = _one(random, list(tree.find_all(exp.Case)))
    if chosen is None:
        return None
    (branch,) = chosen.args["ifs"]
    value, other = branch.args["true"].copy(), chosen.args["default"].copy()
    branch.set("true", other)
    chosen.set("default", value)
    return tree


def default_past_join(tree: Any, random: Random) -> Any:
    """The second source gets its default below the join and not above it, or the other way."""
    found = [
        join.this
        for join in tree.find_all(exp.Join)
        if isinstance(join.this, exp.Table) and join.this.db and not is_inner(join)
    ]
    chosen = _one(random, found)
    if chosen is None:
        return None
    inner = parse(f"SELECT k, g, COALESCE(v, 7) AS v, s FROM {chosen.db}.{chosen.name}")
    select = chosen.find_ancestor(exp.Select)
    for column in [c for c in _columns(select) if c.table == chosen.alias and c.name == "v"]:
        if random.random() < 0.5 and column.find_ancestor(exp.Join) is None:
            column.replace(parse(f"SELECT COALESCE({column.sql()}, 7)").expressions[0])
    chosen.replace(exp.Subquery(this=inner, alias=chosen.args["alias"].copy()))
    return tree


MISSES: Mapping[str, Miss] = {
    function.__name__: function
    for function in (
        other_occurrence,
        exchanged_occurrences,
        other_column,
        other_sign,
        exchanged_sides,
        other_number,
        other_case,
        and_or,
        dropped_condition,
        dropped_not,
        other_join,
        moved_condition,
        other_total,
        other_count,
        distinct,
        other_group,
        other_set,
        exchanged_results,
        other_window,
        other_limit,
        filter_past,
        other_table,
        not_in_as_not_exists,
        dropped_default,
        other_branch,
        default_past_join,
    )
}
