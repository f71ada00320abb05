"""Changes of what a column holds: types, divisions, totals; and results that stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ci_bot.worker.rules.changes.forward import validity_columns
from ci_bot.worker.rules.changes.rewrites import gives_the_same
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.pair import Pair
from ci_bot.worker.rules.registry import rule
from ci_bot.worker.rules.sql import columns as types
from ci_bot.worker.rules.sql.algebra.terms import Key
from ci_bot.worker.rules.sql.meaning import WHOLE
from ci_bot.worker.rules.sql.queries import short

RETYPED = rule("column-retyped", "A column gets another type", "high", "change")
DIVISION = rule("division-changed", "A division means something else", "high", "change")
AGGREGATE = rule("aggregate-changed", "A column is summed up otherwise", "high", "change")
SAME = rule("same-result", "The text differs, the result is the same", "info", "change")


def retyped(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Types that hold less than before, or something else."""
    old, new = types.known_types(pair.before), types.known_types(pair.after)
    if old is None or new is None:
        return
    dialect = pair.after.dialect
    readers = {change.name: change.readers for change in pair.columns}
    # The validity columns of a dimension are SQLMesh's; state gives their type back otherwise.
    own = validity_columns(pair.after)
    for how, severity in (("narrower", None), ("other", None), ("wider", "low")):
        found = [
            name
            for name, kind in old.items()
            if name in new and name not in own and types.retyped(kind, new[name]) == how
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
            + (f" Read by {names(short(name) for name in read)}." if read else ""),
            "readers and stored values fit the new type",
            # A model whose own text is the same follows one above it, and that one is judged.
            severity="low" if pair.same_query else severity,  # type: ignore[arg-type]
            model=pair.after,
            anchors=tuple(found),
        )


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
            anchors=(name, "DIV", "/"),
        )


def _below(bag: Counter[Key]) -> dict[Key, int]:
    return {key: count for key, count in bag.items() if key != WHOLE}


def aggregates(pair: Pair, inputs: RuleInputs) -> Iterator[Observation]:
    """Columns that keep their name and sum up otherwise, here or in a CTE below."""
    if pair.meanings is None:
        return
    old, new = (side.totals for side in pair.meanings)
    changed = [
        f"{name} from {_in_words(old[name])} to {_in_words(new[name])}"
        for name in sorted(set(old) & set(new))
        if set(old[name]) != set(new[name]) and old[name]
    ]
    if changed:
        yield Observation(
            AGGREGATE,
            f"Summed up otherwise: {names(changed)}.",
            "the owner confirms the new meaning of the columns",
            model=pair.after,
            anchors=tuple(item.split()[0] for item in changed),
        )


def _in_words(bag: Counter[str]) -> str:
    return "+".join(sorted(bag)) or "none"


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
