"""Joins by keys of two things, of a row with itself, and of texts that are never equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ci_bot.worker.rules.models.declared_keys import (
    Place,
    find_column_alias_and_name,
    iterate_equalities,
    list_column_aliases_and_names,
    list_unique_keys,
    make_singular,
    split_column_name_into_words,
)
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.queries.fan_outs import list_source_keys
from ci_bot.worker.rules.slips.query_slips import QuerySlip
from ci_bot.worker.rules.slips.value_origins import KnownTexts, ValueOrigins
from ci_bot.worker.sql import (
    ModelQuery,
    ScopedJoin,
    ScopedSelect,
    SelectSource,
    enter_expression,
    table_name,
)

_NUMBERS_OF_THINGS = frozenset({"id", "no", "number", "nr", "key", "code", "uuid", "sku"})
# What is counted beside a row itself.
_OTHERS = frozenset({
    "sibling", "other", "pair", "peer", "neighbour", "neighbor", "colleague", "coworker", "similar",
    "duplicate", "competitor", "rival", "match", "matches", "together", "cooccurrence", "partner",
    "related",
})  # fmt: skip


def iterate_join_slips(
    query: ModelQuery, project: ProjectView, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields joins whose condition compares what is not meant."""
    for select in query.root.selects:
        yield from _iterate_keys_of_other_things(select, project)
        yield from _iterate_pairs_with_itself(select, project)
        yield from _iterate_texts_that_never_meet(select, origins)


# Keys that mean other things.


def _iterate_keys_of_other_things(
    select: ScopedSelect, project: ProjectView
) -> Iterator[QuerySlip]:
    """Yields joins of the keys of two things, of which one has a column with the other's key."""
    for join in select.joins:
        parts = [part.unnest() for part in join.conditions]
        pairs = [
            (part, part.this.unnest(), part.expression.unnest())
            for part in parts
            if isinstance(part, exp.EQ | exp.NullSafeEQ)
        ]
        columns = [pair for pair in pairs if all(isinstance(one, exp.Column) for one in pair[1:])]
        if join.using or any(one.name.lower() == two.name.lower() for _, one, two in columns):
            continue
        for part, one, two in columns:
            mine, other = one.name.lower(), two.name.lower()
            if mine.endswith(other) or other.endswith(mine) or not _are_ids(mine, other):
                continue
            right = _find_right_column(select, one, two, project) or _find_right_column(
                select, two, one, project
            )
            if right is not None:
                holder, name = right
                called = project.name_of_source(select, holder)
                yield QuerySlip(
                    part,
                    f"compares keys of two things, and `{called}` has a column `{name}` of its own",
                    f"the join compares `{name}` of both sides",
                )


def _are_ids(*names: str) -> bool:
    """Whether all names are those of numbers of things, and not of times."""
    return all(split_column_name_into_words(name)[-1] in _NUMBERS_OF_THINGS for name in names)


def _find_right_column(
    select: ScopedSelect, one: exp.Column, two: exp.Column, project: ProjectView
) -> Place | None:
    """Finds the column that a join of keys of two things means; None if this one may be meant.

    It is on the first side and has the name of the second, which is the key of its table; or it is
    the key of the second side and has the name of the first.
    """
    name, other = one.name.lower(), two.name.lower()
    source, partner = (select.sources.get(side.table.lower()) for side in (one, two))
    if source is None or partner is None or _is_same_source(source, partner):
        return None
    if _is_own_key(partner, name, project) and not _is_own_key(partner, other, project):
        is_other_thing = _is_key_of_other_thing(other, name, project)
        return (two.table.lower(), name) if is_other_thing else None
    if other not in _list_columns(source, project) or not _is_own_key(partner, other, project):
        return None
    is_other_thing = _is_own_key(source, name, project) or (
        not _is_own_key(source, other, project) and _is_key_of_other_thing(name, other, project)
    )
    return (one.table.lower(), other) if is_other_thing else None


def _is_key_of_other_thing(name: str, other: str, project: ProjectView) -> bool:
    """Whether models have this key, and none makes it of the other one, as a kind of user."""
    is_known = False
    for model in project.models.values():
        if frozenset({name}) not in list_unique_keys(model):
            continue
        query = project.queries.query_of(model)
        made_of = query.root.find_origins(name) if query is not None else set()
        columns = {column.lower() for column in model.columns_to_types or ()}
        if other in columns or any(column == other for _, column in made_of):
            return False
        is_known = True
    return is_known


def _is_own_key(source: SelectSource, name: str, project: ProjectView) -> bool:
    """Whether one column identifies a row of a source, by a declaration or by its name."""
    if frozenset({name}) in list_source_keys(source, project.by_table):
        return True
    if not isinstance(source, exp.Table):
        return False
    return name == f"{make_singular(table_name(source).rpartition('.')[2])}_id"


def _list_columns(source: SelectSource, project: ProjectView) -> frozenset[str]:
    if isinstance(source, exp.Table):
        return project.columns_of(table_name(source)) or frozenset()
    branch = source.only_branch
    return frozenset(branch.names) if branch is not None else frozenset()


def _is_same_source(one: SelectSource, other: SelectSource) -> bool:
    if isinstance(one, exp.Table) and isinstance(other, exp.Table):
        return table_name(one) == table_name(other)
    return one is other


# A join of a table with itself.


def _iterate_pairs_with_itself(select: ScopedSelect, project: ProjectView) -> Iterator[QuerySlip]:
    """Yields counts of the partners of a row that is a partner of itself, too."""
    for join in select.joins:
        one = next((name for name in select.sources if _is_twin(select, name, join)), None)
        if one is None or not join.adds_columns:
            continue
        tests = [*join.conditions, *select.list_clause_conditions("where", "qualify")]
        shared = {place[1] for place, _ in iterate_equalities(tests) if place[0] == join.alias}
        own = [
            part
            for part in tests
            if {one, join.alias} & {alias for alias, _ in list_column_aliases_and_names(part)}
            and not (isinstance(part, exp.Not) and isinstance(part.this.unnest(), exp.Is))
        ]
        keys = list_source_keys(select.sources[one], project.by_table)
        is_shared = all(_compares_one_column(part, {one, join.alias}) for part in own)
        if not own or not is_shared or not keys or any(key <= shared for key in keys):
            continue
        if any(_is_key_by_name(select, one, name) for name in shared):
            continue
        yield from _iterate_counts_of_twins(select, (one, join.alias), keys)


def _is_twin(select: ScopedSelect, alias: str, join: ScopedJoin) -> bool:
    partner = select.sources.get(join.alias)
    return (
        alias != join.alias
        and partner is not None
        and _is_same_source(select.sources[alias], partner)
    )


def _is_key_by_name(select: ScopedSelect, alias: str, name: str) -> bool:
    table = select.find_table(alias)
    return table is not None and name == f"{make_singular(table_name(table).rpartition('.')[2])}_id"


def _compares_one_column(part: exp.Expr, aliases: set[str]) -> bool:
    """Whether a condition is `a.x = b.x` of two aliases."""
    test = part.unnest()
    if not isinstance(test, exp.EQ | exp.NullSafeEQ):
        return False
    sides = [test.this.unnest(), test.expression.unnest()]
    return (
        all(isinstance(side, exp.Column) for side in sides)
        and {side.table.lower() for side in sides} == aliases
        and sides[0].name.lower() == sides[1].name.lower()
    )


def _iterate_counts_of_twins(
    select: ScopedSelect, aliases: tuple[str, str], keys: Sequence[frozenset[str]]
) -> Iterator[QuerySlip]:
    grouped = {
        find_column_alias_and_name(key)
        for key in select.list_group_keys()
        if isinstance(key, exp.Column)
    }
    pairs = {
        name for alias, name in grouped if {(one, name) for one in aliases} <= grouped and alias
    }
    for name, item in select.results:
        count = enter_expression(item, exp.Paren, exp.Cast, exp.Coalesce)
        own = split_column_name_into_words(name)
        words = {*own, *map(make_singular, own)}
        if not isinstance(count, exp.Count) or not (pairs or words & _OTHERS):
            continue
        distinct = count.this.expressions if isinstance(count.this, exp.Distinct) else []
        counted = {one.name.lower() for one in distinct if isinstance(one, exp.Column)}
        if not distinct or any(key <= counted for key in keys):
            yield QuerySlip(
                count,
                "counts each row as a partner of itself, and each pair twice: the join of the "
                "table with itself only compares what many rows share",
                "the join also has a condition on the key, with < for pairs or <> for others",
            )


# Texts in other letters.


def _are_in_other_letters(one: KnownTexts, other: KnownTexts) -> bool:
    folded = ({text.casefold() for text in known.texts or ()} for known in (one, other))
    return bool(set.intersection(*folded))


def _iterate_texts_that_never_meet(
    select: ScopedSelect, origins: ValueOrigins
) -> Iterator[QuerySlip]:
    """Yields equalities of two texts that have no value in common."""
    for node in select.find_all(exp.EQ, exp.NullSafeEQ):
        sides = [enter_expression(one, exp.Paren) for one in (node.this, node.expression)]
        if any(isinstance(side, exp.Literal) for side in sides):
            continue
        known = [origins.find_texts(select, side) for side in sides]
        one, other = known
        if one is None or other is None:
            continue
        if one.texts is None and other.texts is None:
            # UPPER(x) = LOWER(x) asks whether a text has no letters.
            is_apart = one.case != other.case and sides[0].this != sides[1].this
        else:
            listed, rest = (one, other) if one.texts is not None else (other, one)
            is_apart = not any(map(rest.includes_text, listed.texts or ()))
            # Other texts may be of a variable, for example in a model of each site.
            is_apart = is_apart and (rest.case is not None or _are_in_other_letters(one, other))
        if is_apart:
            yield QuerySlip(
                node,
                f"is never true: one side is {one.why}, the other one is {other.why}, and they "
                "have no value in common",
                "both sides have the same letters, by UPPER or LOWER of both",
            )
