"""Rewrites that change no row, each as a function on a copy of a tree; None where one has no place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from sqlglot import exp

from ci_bot.worker.sqlmesh_compat.models_and_trees import FROM, WITH
from tests.unit.sql.pairs.bases import COLUMNS, TABLES, parse

Rewrite = Callable[[Any, Random], Any]


def conjuncts(node: Any) -> list[Any]:
    inner = node.unnest()
    return [*inner.flatten()] if isinstance(inner, exp.And) else [node]


def joined(parts: list[Any]) -> Any:
    return exp.and_(*parts, copy=True)


def selects(tree: Any) -> list[Any]:
    return list(tree.find_all(exp.Select))


def joins_of(select: Any) -> list[Any]:
    return select.args.get("joins") or []


def way_of(join: Any) -> str:
    return " ".join(part for part in (join.side, join.kind) if part)


def is_inner(join: Any) -> bool:
    return way_of(join) in {"", "INNER", "CROSS"}


def _pick(random: Random, items: list[Any]) -> Any:
    return random.choice(items) if items else None


def _aliases(tree: Any) -> list[str]:
    found = {node.alias for node in tree.find_all(exp.Table, exp.Subquery) if node.alias}
    return sorted(found)


def rename_aliases(tree: Any, random: Random) -> Any:
    old = _aliases(tree)
    new = old[1:] + old[:1] if len(old) > 1 and random.random() < 0.5 else [f"n{n}" for n in old]
    names = dict(zip(old, new, strict=True))
    for node in tree.find_all(exp.TableAlias):
        if node.name in names and not isinstance(node.parent, exp.CTE):
            node.set("this", exp.to_identifier(names[node.name]))
    for column in tree.find_all(exp.Column):
        if column.table in names:
            column.set("table", exp.to_identifier(names[column.table]))
    return tree


def rename_ctes(tree: Any, random: Random) -> Any:
    names = {cte.alias: f"named_{cte.alias}" for cte in tree.find_all(exp.CTE)}
    if not names:
        return None
    for node in tree.find_all(exp.CTE):
        node.args["alias"].set("this", exp.to_identifier(names[node.alias]))
    for table in tree.find_all(exp.Table):
        if not table.db and table.name in names:
            table.set("this", exp.to_identifier(names[table.name]))
    return tree


def cte_to_subquery(tree: Any, random: Random) -> Any:
    with_ = tree.args.get(WITH)
    if with_ is None:
        return None
    for cte in reversed(with_.expressions):
        for table in [t for t in tree.find_all(exp.Table) if not t.db and t.name == cte.alias]:
            table.replace(exp.Subquery(this=cte.this.copy(), alias=table.args["alias"].copy()))
    tree.set(WITH, None)
    return tree


def subquery_to_cte(tree: Any, random: Random) -> Any:
    found = [
        node
        for node in tree.find_all(exp.Subquery)
        if isinstance(node.parent, exp.From | exp.Join) and node.find_ancestor(exp.CTE) is None
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    name = f"lifted{random.randint(0, 99)}"
    query = chosen.this.copy()
    chosen.replace(exp.Table(this=exp.to_identifier(name), alias=chosen.args["alias"].copy()))
    return tree.with_(name, as_=query, append=True, copy=False)


def import_cte(tree: Any, random: Random) -> Any:
    chosen = _pick(random, [t for t in tree.find_all(exp.Table) if t.db and t.alias])
    if chosen is None:
        return None
    name = f"import{random.randint(0, 99)}"
    query = parse(f"SELECT * FROM {chosen.db}.{chosen.name}")
    chosen.replace(exp.Table(this=exp.to_identifier(name), alias=chosen.args["alias"].copy()))
    with_ = tree.args.get(WITH)
    made = exp.CTE(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))
    # First, so that the other CTEs may read it, too.
    tree.set(WITH, exp.With(expressions=[made, *(with_.expressions if with_ else [])]))
    return tree


def last_cte(tree: Any, random: Random) -> Any:
    outer = parse("SELECT * FROM final AS outermost")
    if random.random() < 0.5:
        names = ", ".join(f"outermost.{name}" for name in tree.named_selects)
        outer = parse(f"SELECT {names} FROM final AS outermost")
    with_ = tree.args.get(WITH)
    tree.set(WITH, None)
    made = exp.CTE(this=tree, alias=exp.TableAlias(this=exp.to_identifier("final")))
    outer.set(WITH, exp.With(expressions=[*(with_.expressions if with_ else []), made]))
    return outer


def unused_cte(tree: Any, random: Random) -> Any:
    return tree.with_("unused", as_=parse(f"SELECT s FROM {random.choice(TABLES)}"), copy=False)


def unused_column(tree: Any, random: Random) -> Any:
    """One more result of a query that is read by another."""
    found = [
        node
        for node in selects(tree)
        if isinstance(node.parent, exp.CTE | exp.Subquery)
        and isinstance(node.parent.parent, exp.From | exp.Join | exp.With)
        and not node.args.get("distinct")
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    value = "MAX(1)" if chosen.args.get("group") else "1"
    chosen.append("expressions", parse(f"SELECT {value} AS more").expressions[0])
    return tree


def order_of_terms(tree: Any, random: Random) -> Any:
    found = list(tree.find_all(exp.And, exp.Or))
    found = [node for node in found if type(node.parent) is not type(node)]
    for node in found:
        parts = [part.copy() for part in node.flatten()]
        random.shuffle(parts)
        make = exp.and_ if isinstance(node, exp.And) else exp.or_
        node.replace(make(*parts))
    return tree if found else None


_TURNED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
_SAME = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.Add, exp.Mul)


def turned_operands(tree: Any, random: Random) -> Any:
    found = list(tree.find_all(*_TURNED, *_SAME))
    for node in found:
        if random.random() < 0.7:
            left, right = node.this.copy(), node.expression.copy()
            turned: Any = _TURNED.get(type(node), type(node))
            node.replace(turned(this=right, expression=left))
    return tree if found else None


def parentheses(tree: Any, random: Random) -> Any:
    found = [
        node
        for node in tree.find_all(exp.Predicate, exp.Add, exp.Sub)
        if not isinstance(node, exp.SubqueryPredicate) and not node.find(exp.Query)
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    chosen.replace(exp.Paren(this=chosen.copy()))
    return tree


def between(tree: Any, random: Random) -> Any:
    found = list(tree.find_all(exp.Between))
    for node in found:
        value = node.this.copy()
        low = exp.GTE(this=value, expression=node.args["low"].copy())
        high = exp.LTE(this=value.copy(), expression=node.args["high"].copy())
        node.replace(exp.paren(exp.and_(low, high)))
    return tree if found else None


def order_of_lists(tree: Any, random: Random) -> Any:
    found = [node for node in tree.find_all(exp.In) if node.expressions]
    for node in found:
        items = [item.copy() for item in node.expressions]
        random.shuffle(items)
        node.set("expressions", [*items, items[0].copy()])
    return tree if found else None


def negations(tree: Any, random: Random) -> Any:
    """A comparison as the negation of its opposite, or De Morgan."""
    opposite = {exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT, exp.EQ: exp.NEQ}
    chosen = _pick(random, list(tree.find_all(*opposite)))
    if chosen is None:
        return None
    turned = opposite[type(chosen)](this=chosen.this.copy(), expression=chosen.expression.copy())
    chosen.replace(exp.Not(this=exp.paren(turned)))
    return tree


def case_and_if(tree: Any, random: Random) -> Any:
    found = list(tree.find_all(exp.Case))
    for node in found:
        (branch,) = node.args["ifs"]
        made = exp.If(
            this=branch.this.copy(),
            true=branch.args["true"].copy(),
            false=node.args["default"].copy(),
        )
        node.replace(made)
    return tree if found else None


def bare_names(tree: Any, random: Random) -> Any:
    """Columns without an alias, where a SELECT has one source and stands in no other."""
    found = False
    for select in selects(tree):
        lonely = not joins_of(select) and len(selects(select)) == 1
        inside = isinstance(select.parent, exp.Exists | exp.In) or isinstance(
            select.find_ancestor(exp.Where), exp.Where
        )
        if lonely and not inside and not _renames(select):
            for column in select.find_all(exp.Column):
                column.set("table", None)
                found = True
    return tree if found else None


def _renames(select: Any) -> bool:
    """Whether a result has the name of a column: the bare name might then mean it."""
    return any(
        isinstance(item, exp.Alias) and item.alias in COLUMNS and item.alias != item.this.name
        for item in select.expressions
    )


def explicit_names(tree: Any, random: Random) -> Any:
    found = False
    for select in selects(tree):
        for item in list(select.expressions):
            if isinstance(item, exp.Column):
                item.replace(exp.alias_(item.copy(), item.name))
                found = True
    return tree if found else None


def formatted(tree: Any, random: Random) -> Any:
    return parse(
        tree.sql(dialect="spark", pretty=True, normalize_functions="lower").replace("AS", "as")
    )


def order_of_joins(tree: Any, random: Random) -> Any:
    """Inner joins in another order, with the conditions where all that they name is there."""
    found = [
        select
        for select in selects(tree)
        if joins_of(select) and all(is_inner(join) for join in joins_of(select))
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    sources = [chosen.args[FROM].this, *(join.this for join in joins_of(chosen))]
    conditions = [
        part
        for join in joins_of(chosen)
        if join.args.get("on")
        for part in conjuncts(join.args["on"])
    ]
    sources = [source.copy() for source in sources]
    random.shuffle(sources)
    chosen.set(FROM, exp.From(this=sources[0]))
    made, left = [], [part.copy() for part in conditions]
    for place in range(1, len(sources)):
        seen = {source.alias_or_name for source in sources[: place + 1]}
        now = [part for part in left if {c.table for c in part.find_all(exp.Column)} <= seen]
        left = [part for part in left if part not in now]
        kind = {"on": joined(now)} if now else {"kind": "CROSS"}
        made.append(exp.Join(this=sources[place], **kind))
    chosen.set("joins", made)
    return tree


def condition_to_where(tree: Any, random: Random) -> Any:
    found = [
        (select, join)
        for select in selects(tree)
        for join in joins_of(select)
        if is_inner(join) and join.args.get("on") and not _is_before_outer(select, join)
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    select, join = chosen
    condition = join.args["on"]
    join.set("on", None)
    join.set("kind", "CROSS")
    select.where(condition, copy=False)
    return tree


def _is_before_outer(select: Any, join: Any) -> bool:
    joins = joins_of(select)
    return any(other.side in {"RIGHT", "FULL"} for other in joins[joins.index(join) :])


def commas(tree: Any, random: Random) -> Any:
    found = [
        select
        for select in selects(tree)
        if joins_of(select) and all(is_inner(join) for join in joins_of(select))
    ]
    for select in found:
        for join in joins_of(select):
            condition = join.args.get("on")
            join.set("on", None)
            join.set("kind", None)
            if condition is not None:
                select.where(condition, copy=False)
    return tree if found else None


def left_to_right(tree: Any, random: Random) -> Any:
    other = {"LEFT": "RIGHT", "RIGHT": "LEFT", "FULL": "FULL"}
    found = [
        select
        for select in selects(tree)
        if len(joins_of(select)) == 1 and way_of(joins_of(select)[0]) in other
    ]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    (join,) = joins_of(chosen)
    first, second = chosen.args[FROM].this.copy(), join.this.copy()
    chosen.set(FROM, exp.From(this=second))
    join.set("this", first)
    join.set("side", other[join.side])
    return tree


def filter_to_subquery(tree: Any, random: Random) -> Any:
    """A filter on the first table moves below it, where nothing makes up rows for that table."""
    found = []
    for select in selects(tree):
        source, where = select.args[FROM].this, select.args.get("where")
        made_up = any(join.side in {"RIGHT", "FULL"} for join in joins_of(select))
        if where is None or made_up or not isinstance(source, exp.Table) or not source.db:
            continue
        for part in conjuncts(where.this):
            names = {column.table for column in part.find_all(exp.Column)}
            if names == {source.alias} and not part.find(exp.Query):
                found.append((select, source, part))
    chosen = _pick(random, found)
    if chosen is None:
        return None
    select, source, part = chosen
    rest = [other for other in conjuncts(select.args["where"].this) if other is not part]
    inner = parse(f"SELECT * FROM {source.db}.{source.name} AS {source.alias}").where(part)
    select.set("where", exp.Where(this=joined(rest)) if rest else None)
    source.replace(exp.Subquery(this=inner, alias=source.args["alias"].copy()))
    return tree


def order_of_groups(tree: Any, random: Random) -> Any:
    found = [select for select in selects(tree) if select.args.get("group")]
    for select in found:
        group = select.args["group"]
        group.set("expressions", [key.copy() for key in reversed(group.expressions)])
    return tree if found else None


def numbered_groups(tree: Any, random: Random) -> Any:
    found = False
    for select in selects(tree):
        group = select.args.get("group")
        results = [item.unalias().sql() for item in select.expressions]
        if group is None or any(key.sql() not in results for key in group.expressions):
            continue
        places = [results.index(key.sql()) + 1 for key in group.expressions]
        group.set("expressions", [exp.Literal.number(place) for place in places])
        found = True
    return tree if found else None


def distinct_as_group(tree: Any, random: Random) -> Any:
    found = [
        select
        for select in selects(tree)
        if select.args.get("distinct")
        and not select.find(exp.Window, exp.AggFunc)
        and not any(isinstance(item.unalias(), exp.Literal) for item in select.expressions)
    ]
    for select in found:
        select.set("distinct", None)
        select.set("group", exp.Group(expressions=[i.unalias().copy() for i in select.expressions]))
    return tree if found else None


def having_outside(tree: Any, random: Random) -> Any:
    """The results of a grouped query are filtered by a query around it."""
    if not isinstance(tree, exp.Select) or not tree.args.get("having") or tree.args.get(WITH):
        return None
    condition = tree.args["having"].this
    tree.set("having", None)
    tree.append("expressions", exp.alias_(condition.this.copy(), "asked"))
    names = ", ".join(f"around.{name}" for name in tree.named_selects if name != "asked")
    outer = parse(f"SELECT {names} FROM x AS around WHERE around.asked > {condition.expression}")
    outer.args[FROM].this.replace(exp.Subquery(this=tree, alias=exp.TableAlias(this="around")))
    return parse(outer.sql(dialect="spark"))


def branches(tree: Any, random: Random) -> Any:
    found = [
        n for n in tree.find_all(exp.Union, exp.Intersect) if not isinstance(n.this, exp.Union)
    ]
    found = [n for n in found if not isinstance(n.parent, exp.Except)]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    left, right = chosen.this.copy(), chosen.expression.copy()
    for one, other in zip(left.expressions, right.expressions, strict=True):
        # The first branch names the columns.
        other.replace(exp.alias_(other.unalias().copy(), one.alias_or_name))
    chosen.set("this", right)
    chosen.set("expression", left)
    return tree


def order_of_results(tree: Any, random: Random) -> Any:
    if not isinstance(tree, exp.Select) or len(tree.expressions) < 2:
        return None
    tree.set("expressions", [item.copy() for item in reversed(tree.expressions)])
    return tree


def counted(tree: Any, random: Random) -> Any:
    found = [node for node in tree.find_all(exp.Count) if isinstance(node.this, exp.Star)]
    for node in found:
        node.set("this", exp.Literal.number(1))
    return tree if found else None


def exists_of_anything(tree: Any, random: Random) -> Any:
    found = list(tree.find_all(exp.Exists))
    for node in found:
        node.this.set("expressions", [exp.Star()])
    return tree if found else None


def again(tree: Any, random: Random) -> Any:
    """A condition that is there already."""
    found = [select for select in selects(tree) if select.args.get("where")]
    chosen = _pick(random, found)
    if chosen is None:
        return None
    part = random.choice(conjuncts(chosen.args["where"].this))
    return chosen.where(part.copy(), copy=False) and tree


def partitions(tree: Any, random: Random) -> Any:
    found = [node for node in tree.find_all(exp.Window) if node.args.get("partition_by")]
    for node in found:
        node.set("partition_by", [key.copy() for key in reversed(node.args["partition_by"])])
    return tree if found else None


REWRITES: Mapping[str, Rewrite] = {
    function.__name__: function
    for function in (
        rename_aliases,
        rename_ctes,
        cte_to_subquery,
        subquery_to_cte,
        import_cte,
        last_cte,
        unused_cte,
        unused_column,
        order_of_terms,
        turned_operands,
        parentheses,
        between,
        order_of_lists,
        negations,
        case_and_if,
        bare_names,
        explicit_names,
        formatted,
        order_of_joins,
        condition_to_where,
        commas,
        left_to_right,
        filter_to_subquery,
        order_of_groups,
        numbered_groups,
        distinct_as_group,
        having_outside,
        branches,
        order_of_results,
        counted,
        exists_of_anything,
        again,
        partitions,
    )
}
