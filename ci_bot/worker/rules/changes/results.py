"""Changes of a column's values: types, divisions, totals; and results that stay the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker.rules.changes.forward_only import list_validity_columns
from ci_bot.worker.rules.executions import judge_pair
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.rules.statement_rules import iterate_model_statements
from ci_bot.worker.sql import (
    WHOLE,
    ModelQuery,
    TermKey,
    column_changes,
    is_pure_macro,
    map_stored_code_of_model,
    plain_name,
    strip_quotes,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

_LOSSY = "; values that do not fit are rounded, cut or NULL."

# The names of macro variables that are times begin so.


_TIMES = ("start_", "end_", "execution_")


def is_proved_at_all_times(pair: ModelPair) -> bool:
    """Whether a proof shows that both versions always give the same rows, for any data and time.

    While SQLMesh loads a project, start and end are the same moment. So a second proof uses three
    different times. A macro can use the times in any way, so macros must be the same.
    """
    if not pair.is_proved_same:
        return False
    old, new = pair.query_before, pair.query_after
    if old is None or new is None or old.written is None or new.written is None:
        return False
    return (
        _does_change_keep_frame(pair)
        and _does_change_keep_macros(pair, old, new)
        and _is_same_at_other_times(pair, old, new)
    )


def _does_change_keep_frame(pair: ModelPair) -> bool:
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
        and _read_declared_types(before) == _read_declared_types(after)
        and list(iterate_model_statements(before)) == list(iterate_model_statements(after))
    )


def _does_change_keep_macros(pair: ModelPair, old: ModelQuery, new: ModelQuery) -> bool:
    """Whether both versions call the same macros in the same way.

    A macro call may differ, and calls may be added or removed, if the macro only writes its
    arguments into the query. SQLMesh's own macros do so, and the code of another macro can show it.
    No argument may be a time, because the macro could compare it with another.
    """
    before, after = _count_macro_calls(old), _count_macro_calls(new)
    if not before and not after:
        return True
    if _list_definitions_of_model(pair.before) != _list_definitions_of_model(pair.after):
        return False
    code, was = map_stored_code_of_model(pair.after), map_stored_code_of_model(pair.before)
    for name in code.keys() | was.keys():
        one, other = was.get(name), code.get(name)
        if one != other and (
            (one is not None and other is not None) or not is_pure_macro(one or other)
        ):
            return False
    projects_own = {name.lower(): text for name, text in (*was.items(), *code.items())}
    differing = [*(before - after).elements(), *(after - before).elements()]
    calls = {
        call.sql(): call
        for query in (old, new)
        for call in query.written_tree.find_all(d.MacroFunc)
    }
    return not any(
        _does_call_mention_time(calls[text])
        or (
            (own := projects_own.get(_name_macro_call(calls[text]))) is not None
            and not is_pure_macro(own)
        )
        for text in differing
    )


def _count_macro_calls(query: ModelQuery) -> Counter[str]:
    return Counter(call.sql() for call in query.written_tree.find_all(d.MacroFunc))


def _name_macro_call(call: exp.Expr) -> str:
    return str(call.this.name or call.name).lower()


def _does_call_mention_time(call: exp.Expr) -> bool:
    return any(var.name.lower().startswith(_TIMES) for var in call.find_all(d.MacroVar))


def _list_definitions_of_model(model: Model) -> list[str]:
    return [definition.sql() for definition in model.macro_definitions]


def _is_same_at_other_times(pair: ModelPair, old: ModelQuery, new: ModelQuery) -> bool:
    if not any(query.written_tree.has_any(d.MacroVar, d.MacroFunc) for query in (old, new)):
        return True
    stages = (
        (old.rendered_apart, new.rendered_apart),
        (old.rendered_for_creation, new.rendered_for_creation),
    )
    return all(_is_proved_same(pair, before, after) for before, after in stages)


def _is_proved_same(pair: ModelPair, before: exp.Expr | None, after: exp.Expr | None) -> bool:
    if before is None or after is None:
        return False
    forms = pair.normalize_both(before, after)
    if forms is None:
        return False
    was, now = forms
    return was.proves_same(now, one_text=pair.is_one_text(before, after))


RETYPED = find_rule("column-retyped")
DIVISION = find_rule("division-changed")
AGGREGATE = find_rule("aggregate-changed")
SAME = find_rule("same-result")

# A longer expression is cut in a report.
SHOWN = 120


@on_change(RETYPED)
def find_retyped_columns(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds types that can hold fewer values than before, or other ones."""
    if not pair.has_inferred_types:  # the rule on seeds names the value that is the cause
        yield from observe_retyped_columns(pair, inputs)


def observe_retyped_columns(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Observes columns with another type, which holds fewer values, other values, or more."""
    old = column_changes.list_known_types(pair.before)
    new = column_changes.list_known_types(pair.after)
    if old is None or new is None:
        return
    dialect = pair.after.dialect
    follows = pair.has_same_query and _read_declared_types(pair.before) == _read_declared_types(
        pair.after
    )
    readers = {change.name: change.readers for change in pair.column_changes}
    # SQLMesh adds the validity columns of a dimension; their type differs in the state.
    own = list_validity_columns(pair.after)
    models = {plain_name(fqn): model for fqn, model in inputs.before.items()}

    def is_only_assumed(name: str, kind: Any, replaced: exp.Expr) -> bool:
        whole = (kind.this.value, replaced.this.value) == ("BIGINT", "INT")
        return whole and column_changes.is_assumed_bigint(pair.before, name, models, pair.queries)

    for how, severity in (("narrower", None), ("other", None), ("wider", "low")):
        found = [
            name
            for name, kind in old.items()
            if name in new
            and name not in own
            and column_changes.compare_types(kind, new[name]) == how
            and not (how == "narrower" and is_only_assumed(name, kind, new[name]))
        ]
        if not found:
            continue
        descriptions = [
            f"{n} {old[n].sql(dialect=dialect)} to {new[n].sql(dialect=dialect)}" for n in found
        ]
        read = {reader for name in found for reader in readers.get(name, [])}
        yield RuleObservation(
            RETYPED,
            f"Retyped: {quote_names(descriptions)}"
            + (_LOSSY if how == "narrower" else ".")
            + (f" Read by {quote_names(map(inputs.names.short_name, read))}." if read else ""),
            "readers and stored values fit the new type",
            # If the model's own text is the same, a model above is the cause and has the finding.
            severity="low" if follows else severity,  # type: ignore[arg-type]
            model=pair.after,
            subject=tuple(found),
            anchors=tuple(found),
        )


def _read_declared_types(model: Model) -> dict[str, str]:
    """Reads the types in a model's own `columns`: the table has them, not those of the query."""
    declared = getattr(model, "columns_to_types_", None) or {}
    return {name: kind.sql(dialect="spark") for name, kind in declared.items()}


@on_change(RETYPED)
def find_changed_casts(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds casts inside an expression: its type may be the same although values no longer fit."""
    if pair.query_before is None or pair.query_after is None or pair.has_same_query:
        return
    old, new = _list_casts(pair.query_before), _list_casts(pair.query_after)
    dialect = pair.after.dialect
    found = {
        text: f"{text} from {old[text].sql(dialect=dialect)} to {new[text].sql(dialect=dialect)}"
        for text in old.keys() & new.keys()
        if column_changes.compare_types(old[text], new[text]) == "narrower"
    }
    if found:
        yield RuleObservation(
            RETYPED,
            f"Cast to a type that holds less: {quote_names(found.values())}{_LOSSY}",
            "the values fit the new type",
            model=pair.after,
            subject=tuple(sorted(found)),
            anchors=("CAST",),
        )


def _list_casts(query: ModelQuery) -> dict[str, exp.DataType]:
    """Maps each expression that is cast to the type of its casts, if that is only one type."""
    found: dict[str, exp.DataType | None] = {}
    for node in query.tree.find_all(exp.Cast, exp.TryCast):
        if isinstance(node.parent, exp.Alias | exp.Select):
            continue  # the type of the column itself, which another rule compares
        text = shorten_redacted(redact_shapes(strip_quotes(node.this.sql())), SHOWN)
        found[text] = None if found.get(text, node.to) != node.to else node.to
    return {text: kind for text, kind in found.items() if kind is not None}


@on_change(DIVISION)
def find_changed_divisions(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds quotients that are cut to whole numbers, or have another divisor."""
    if pair.both_meanings is None:
        return
    old, new = (side.quotients for side in pair.both_meanings)
    for name in sorted(set(old) & set(new)):
        was, now = old[name], new[name]
        if now[WHOLE] > was[WHOLE]:
            effect = "is cut to whole numbers"
        elif now[WHOLE] < was[WHOLE]:
            effect = "is no longer cut to whole numbers"
        elif (
            _count_inner_terms(was) != _count_inner_terms(now)
            and _count_inner_terms(was)
            and _count_inner_terms(now)
        ):
            effect = "divides by something else"
        else:
            continue
        yield RuleObservation(
            DIVISION,
            f"The quotient in `{name}` {effect}.",
            "the owner confirms the new figure",
            model=pair.after,
            subject=(name,),
            anchors=(name, "DIV", "/"),
        )


def _count_inner_terms(bag: Counter[TermKey]) -> dict[TermKey, int]:
    return {key: count for key, count in bag.items() if key != WHOLE}


@on_change(AGGREGATE)
def find_changed_aggregates(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds columns with the same name and another aggregate, in the query or in a CTE."""
    if pair.both_meanings is None:
        return
    old, new = (side.totals for side in pair.both_meanings)
    changed = {
        name: f"{name} from {_describe_totals(old[name])} to {_describe_totals(new[name])}"
        for name in sorted(set(old) & set(new))
        if set(old[name]) != set(new[name]) and old[name]
    }
    if changed:
        yield RuleObservation(
            AGGREGATE,
            f"Aggregated differently: {quote_names(changed.values())}.",
            "the owner confirms the new meaning of the columns",
            model=pair.after,
            subject=tuple(changed),
            anchors=tuple(changed),
        )


def _describe_totals(bag: Counter[str]) -> str:
    return "+".join(sorted(bag)) or "none"


def is_reported_as_same(pair: ModelPair, inputs: RuleInputs) -> bool:
    """Whether a proof and an execution agree that both versions give the same result.

    If the queries cannot be run, the engine must get the same text.
    """
    executed = judge_pair(pair, inputs)
    confirmed = executed.verdict == "alike" or (
        executed.verdict == "not_tried" and pair.has_same_text
    )
    return confirmed and is_proved_at_all_times(pair)


@on_change(SAME)
def find_same_results(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a rewrite with the same rows on any data: a proof shows it, execution confirms it."""
    if pair.has_same_query or not is_reported_as_same(pair, inputs):
        return
    order = pair.both_forms is not None and list(pair.both_forms[0].results) != list(
        pair.both_forms[1].results
    )
    yield RuleObservation(
        SAME,
        "Only the spelling differs: names, nesting, or an order that means nothing. Filters, "
        "joins, groups and columns mean the same"
        f"{', and the columns are in another order' if order else ''}.",
        "nothing to do",
        model=pair.after,
    )
