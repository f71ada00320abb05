"""Changes of what a column holds: types, divisions, totals; and results that stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from ci_bot.contracts.rules import rule
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.rules.changes.forward import validity_columns
from ci_bot.worker.rules.changes.rewrites import gives_the_same
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.sql import columns as types
from ci_bot.worker.rules.sql.algebra.terms import TermKey
from ci_bot.worker.rules.sql.meaning import WHOLE, unquoted
from ci_bot.worker.rules.sql.queries import Query, plain

RETYPED = rule("column-retyped")
DIVISION = rule("division-changed")
AGGREGATE = rule("aggregate-changed")
SAME = rule("same-result")

# An expression is told whole up to here.
SHOWN = 120


@on_change(RETYPED)
def retyped(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Types that hold less than before, or something else."""
    if not pair.has_inferred_types:  # what made them others stands in the seed's file
        yield from observe_retyped(pair, inputs)


def observe_retyped(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """The columns of another type: those that hold less, something else, or more."""
    old, new = types.known_types(pair.before), types.known_types(pair.after)
    if old is None or new is None:
        return
    dialect = pair.after.dialect
    readers = {change.name: change.readers for change in pair.columns}
    # The validity columns of a dimension are SQLMesh's; state gives their type back otherwise.
    own = validity_columns(pair.after)
    models = {plain(fqn): model for fqn, model in inputs.before.items()}

    def supposed(name: str, kind: Any, replaced: Any) -> bool:
        whole = (kind.this.value, replaced.this.value) == ("BIGINT", "INT")
        return whole and types.is_supposed(pair.before, name, models, pair.queries)

    for how, severity in (("narrower", None), ("other", None), ("wider", "low")):
        found = [
            name
            for name, kind in old.items()
            if name in new
            and name not in own
            and types.retyped(kind, new[name]) == how
            and not (how == "narrower" and supposed(name, kind, new[name]))
        ]
        if not found:
            continue
        told = [
            f"{n} {old[n].sql(dialect=dialect)} to {new[n].sql(dialect=dialect)}" for n in found
        ]
        read = {reader for name in found for reader in readers.get(name, [])}
        yield Observation(
            RETYPED,
            f"Retyped: {names(told)}"
            + ("; values that do not fit are rounded, cut or NULL." if how == "narrower" else ".")
            + (f" Read by {names(map(inputs.names.of, read))}." if read else ""),
            "readers and stored values fit the new type",
            # A model whose own text is the same follows one above it, and that one is judged.
            severity="low" if pair.same_query else severity,  # type: ignore[arg-type]
            model=pair.after,
            subject=tuple(found),
            anchors=tuple(found),
        )


@on_change(RETYPED)
def casts(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Casts inside an expression, whose own type may hide that values no longer fit."""
    if pair.query_before is None or pair.query_after is None or pair.same_query:
        return
    old, new = _casts(pair.query_before), _casts(pair.query_after)
    dialect = pair.after.dialect
    found = {
        text: f"{text} from {old[text].sql(dialect=dialect)} to {new[text].sql(dialect=dialect)}"
        for text in old.keys() & new.keys()
        if types.retyped(old[text], new[text]) == "narrower"
    }
    if found:
        yield Observation(
            RETYPED,
            f"Cast to a type that holds less: {names(found.values())}; values that do not fit are "
            "rounded, cut or NULL.",
            "the values fit the new type",
            model=pair.after,
            subject=tuple(sorted(found)),
            anchors=("CAST",),
        )


def _casts(query: Query) -> dict[str, Any]:
    """The type that each expression is cast to, where it is cast to one type only."""
    found: dict[str, Any] = {}
    for node in query.tree.all(exp.Cast, exp.TryCast):
        if isinstance(node.parent, exp.Alias | exp.Select):
            continue  # the type of the column itself, which `retyped` compares
        text = shortened(hide(unquoted(node.this.sql())), SHOWN)
        found[text] = None if found.get(text, node.to) != node.to else node.to
    return {text: kind for text, kind in found.items() if kind is not None}


@on_change(DIVISION)
def divisions(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Quotients that are cut to whole numbers or divide by something else."""
    if pair.meanings is None:
        return
    old, new = (side.quotients for side in pair.meanings)
    for name in sorted(set(old) & set(new)):
        was, now = old[name], new[name]
        if now[WHOLE] > was[WHOLE]:
            told = "is cut to whole numbers"
        elif now[WHOLE] < was[WHOLE]:
            told = "is no longer cut to whole numbers"
        elif _below(was) != _below(now) and _below(was) and _below(now):
            told = "divides by something else"
        else:
            continue
        yield Observation(
            DIVISION,
            f"The quotient in `{name}` {told}.",
            "the owner confirms the new figure",
            model=pair.after,
            subject=(name,),
            anchors=(name, "DIV", "/"),
        )


def _below(bag: Counter[TermKey]) -> dict[TermKey, int]:
    return {key: count for key, count in bag.items() if key != WHOLE}


@on_change(AGGREGATE)
def aggregates(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Columns that keep their name and sum up otherwise, here or in a CTE below."""
    if pair.meanings is None:
        return
    old, new = (side.totals for side in pair.meanings)
    changed = {
        name: f"{name} from {_in_words(old[name])} to {_in_words(new[name])}"
        for name in sorted(set(old) & set(new))
        if set(old[name]) != set(new[name]) and old[name]
    }
    if changed:
        yield Observation(
            AGGREGATE,
            f"Aggregated differently: {names(changed.values())}.",
            "the owner confirms the new meaning of the columns",
            model=pair.after,
            subject=tuple(changed),
            anchors=tuple(changed),
        )


def _in_words(bag: Counter[str]) -> str:
    return "+".join(sorted(bag)) or "none"


@on_change(SAME)
def same_result(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """A rewrite that is proven to give the same rows on any data."""
    if pair.same_query or not gives_the_same(pair):
        return
    order = pair.forms is not None and list(pair.forms[0].results) != list(pair.forms[1].results)
    yield Observation(
        SAME,
        "Only the spelling differs: names, nesting, or the order of what has no order. Filters, "
        "joins, groups and columns mean the same"
        f"{', and the columns stand in another order' if order else ''}.",
        "nothing to do",
        model=pair.after,
    )
