"""Changes of what a column holds: types, divisions, totals; and results that stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import rule
from ci_bot.redaction import hide, shortened
from ci_bot.worker.rules.changes.forward_only import validity_columns
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import Pair
from ci_bot.worker.rules.observation import Observation, names
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.statement_rules import model_statements
from ci_bot.worker.sql import (
    WHOLE,
    Interner,
    Query,
    TermKey,
    column_changes,
    form_of,
    is_pure,
    plain,
    unquoted,
)

# Whether a changed query is only another spelling of the old one, at any time that it may run.


_TIMES = ("start_", "end_", "execution_")


def gives_the_same(pair: Pair) -> bool:
    """Whether it is proved that both versions give the same rows, whatever the data and the time.

    While a project is loaded, start and end are one and the same moment; so the proof is made once
    more where all times differ. What a macro does with them only its own text says, so macros have
    to be the same ones.
    """
    if not pair.is_proved_same:
        return False
    old, new = pair.query_before, pair.query_after
    if old is None or new is None or old.written is None or new.written is None:
        return False
    return (
        _same_frame(pair) and _same_macros(pair, old, new) and _same_at_other_times(pair, old, new)
    )


def _same_frame(pair: Pair) -> bool:
    """Whether the model around the query is the same."""
    before, after = pair.before, pair.after
    return bool(
        before.dialect == after.dialect
        and before.gateway == after.gateway
        and before.kind.name == after.kind.name
        and before.kind.data_hash_values == after.kind.data_hash_values
        and before.lookback == after.lookback
        and sorted(c.sql() for c in before.partitioned_by)
        == sorted(c.sql() for c in after.partitioned_by)
        and _declared_types(before) == _declared_types(after)
        and list(model_statements(before)) == list(model_statements(after))
    )


def _declared_types(model: Any) -> dict[str, str]:
    declared = model.columns_to_types_ or {}
    return {name: kind.sql(dialect="spark") for name, kind in declared.items()}


def _same_macros(pair: Pair, old: Query, new: Query) -> bool:
    """Whether macros are called alike, and are the same ones.

    A macro's call may be spelled otherwise, come or go, where the macro only writes its arguments
    down: one of SQLMesh's own, or one whose code shows it. None of its arguments may be a time,
    which it might compare with another.
    """
    before, after = _calls(old), _calls(new)
    if not before and not after:
        return True
    if _definitions(pair.before) != _definitions(pair.after):
        return False
    code, was = _code(pair.after), _code(pair.before)
    for name in code.keys() | was.keys():
        one, other = was.get(name), code.get(name)
        if one != other and ((one is not None and other is not None) or not is_pure(one or other)):
            return False
    projects_own = {name.lower(): text for name, text in (*was.items(), *code.items())}
    differing = [*(before - after).elements(), *(after - before).elements()]
    calls = {
        call.sql(): call for query in (old, new) for call in query.written_tree.all(d.MacroFunc)
    }
    return not any(
        _mentions_time(calls[text])
        or ((own := projects_own.get(_name(calls[text]))) is not None and not is_pure(own))
        for text in differing
    )


def _calls(query: Query) -> Counter[str]:
    return Counter(call.sql() for call in query.written_tree.all(d.MacroFunc))


def _name(call: Any) -> str:
    return str(call.this.name or call.name).lower()


def _mentions_time(call: Any) -> bool:
    return any(var.name.lower().startswith(_TIMES) for var in call.find_all(d.MacroVar))


def _code(model: Any) -> dict[str, str]:
    """The text of the macros and variables that a model uses."""
    return {name: str(item.payload) for name, item in model.python_env.items()}


def _definitions(model: Any) -> list[str]:
    return [definition.sql() for definition in model.macro_definitions]


def _same_at_other_times(pair: Pair, old: Query, new: Query) -> bool:
    if not any(query.written_tree.has(d.MacroVar, d.MacroFunc) for query in (old, new)):
        return True
    stages = (
        (old.rendered_apart, new.rendered_apart),
        (old.rendered_for_creation, new.rendered_for_creation),
    )
    return all(_is_proved_same(pair, before, after) for before, after in stages)


def _is_proved_same(pair: Pair, before: Any, after: Any) -> bool:
    if before is None or after is None:
        return False
    keys = Interner()
    was, now = form_of(before, keys, pair.new_names), form_of(after, keys)
    if was is None or now is None:
        return False
    return was.proves_same(now, one_text=pair.is_one_text(before, after))


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
    old, new = column_changes.known_types(pair.before), column_changes.known_types(pair.after)
    if old is None or new is None:
        return
    dialect = pair.after.dialect
    readers = {change.name: change.readers for change in pair.columns}
    # The validity columns of a dimension are SQLMesh's; state gives their type back otherwise.
    own = validity_columns(pair.after)
    models = {plain(fqn): model for fqn, model in inputs.before.items()}

    def supposed(name: str, kind: Any, replaced: Any) -> bool:
        whole = (kind.this.value, replaced.this.value) == ("BIGINT", "INT")
        return whole and column_changes.is_supposed(pair.before, name, models, pair.queries)

    for how, severity in (("narrower", None), ("other", None), ("wider", "low")):
        found = [
            name
            for name, kind in old.items()
            if name in new
            and name not in own
            and column_changes.retyped(kind, new[name]) == how
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
        if column_changes.retyped(old[text], new[text]) == "narrower"
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
