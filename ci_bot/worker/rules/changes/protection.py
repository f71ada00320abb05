"""The protection of data and readers: rights, hidden columns with personal data, and audits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.changes.model_block import find_period
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, find_anchor_line
from ci_bot.worker.rules.registry import on_change, on_new_model, on_project
from ci_bot.worker.rules.source_columns import (
    is_number_of_contract,
    list_exposed_columns,
    list_query_names,
    trace_column_sources,
)
from ci_bot.worker.sql import (
    ModelQueries,
    Strictness,
    are_same_arguments,
    bind_audit_arguments,
    compare_audit_arguments,
    compare_audit_queries,
    list_column_names,
    list_known_types,
    plain_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.audit import StandaloneAudit
    from sqlmesh.core.model import Model

GRANTS = find_rule("grants-changed")
PERSONAL = find_rule("personal-data-exposed")


@on_change(GRANTS)
def find_grant_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds rights that the change grants or revokes."""
    old, new = _list_rights_of_model(pair.before), _list_rights_of_model(pair.after)
    if old == new:
        return
    given, taken = sorted(new - old), sorted(old - new)
    rights = [f"{right} to {who}" for right, who in given]
    rights += [f"no longer {right} to {who}" for right, who in taken]
    yield RuleObservation(
        GRANTS,
        f"Rights change: {quote_names(rights)}.",
        "the owner of the data agrees",
        model=pair.after,
        subject=tuple(f"{right} to {who}" for right, who in sorted(old ^ new)),
        anchors=("grants",),
    )


def _list_rights_of_model(model: Model) -> set[tuple[str, str]]:
    config = model.grants or {}
    return {(right, str(who)) for right, whom in config.items() for who in whom}


@on_change(PERSONAL)
def find_personal_data(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds columns with personal data that the model did not have before."""
    yield from observe_exposed_columns(pair.after, pair.before, pair, inputs)


@on_new_model(PERSONAL)
def find_personal_data_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds columns with personal data in a new model."""
    yield from observe_exposed_columns(model, None, None, inputs)


def observe_exposed_columns(
    after: Model, before: Model | None, pair: ModelPair | None, inputs: RuleInputs
) -> Iterator[RuleObservation]:
    """Observes personal columns of `after` that `before`, None for a new model, does not have."""
    queries = pair.queries if pair is not None else None
    new = list_exposed_columns(after, queries)
    old = list_exposed_columns(before, queries) if before is not None else {}
    exposed = {name: source for name, source in new.items() if name not in old}
    allowed = inputs.personal_schemas
    if allowed is not None:
        exposed = _list_leaving_columns(exposed, after, inputs, allowed, queries)
    else:
        exposed = {
            name: source
            for name, source in exposed.items()
            if not _does_column_stay_inside(name, source, after, inputs, is_new=before is None)
            and not _identifies_rows_of_source(source, inputs)
        }
    if not exposed:
        return
    # A staging model takes data in; to pass them on is a decision.
    lands = _reads_only_sources(after, inputs) and not _is_passing_schema(after, inputs)
    # If a model read the column and left it out of its result, it did so on purpose.
    kept_back = list_query_names(before, queries) & {
        s.rpartition(".")[2].lower() for s in exposed.values()
    }
    # If the source already had a column, and no model took it until now, taking it in is a
    # decision, too.
    if before is not None and any(
        _was_column_declined(source, inputs) for source in exposed.values()
    ):
        kept_back |= set(exposed)
    hiding = {
        inputs.names.short_name(name)
        for source in exposed.values()
        for name in _list_hiding_models(source, inputs)
    }
    yield RuleObservation(
        PERSONAL,
        f"Personal data: {quote_names(exposed)}"
        + (
            f" (from {quote_names(inputs.names.short_name(s) for s in set(exposed.values()) if s)})"
            if any(exposed.values())
            else ""
        )
        + (
            " were in the source and not shown before, and now are."
            if kept_back
            else f" are shown as they are; {quote_names(hiding)} hashes them or leaves them out."
            if lands and hiding
            else " are taken in from the source."
            if lands
            else " leave the models that held them and reach the readers of this one."
        ),
        "who may see them is settled, or they are hashed or left out",
        # If the policy names schemas that may hold personal data, this schema is not among them.
        severity="low" if lands and allowed is None and not (kept_back or hiding) else None,
        model=after,
        subject=tuple(sorted(exposed)),
        anchors=tuple(exposed),
    )


def _is_passing_schema(after: Model, inputs: RuleInputs) -> bool:
    """Whether most of prod's models in the schema read models, so it is no staging area."""
    schema = _read_schema(after.fqn)
    there = [
        model
        for name, model in inputs.before.items()
        if not model.kind.is_external and _read_schema(name) == schema
    ]
    passing = [
        model
        for model in there
        if any(
            not parent.kind.is_external
            for name in model.depends_on
            if (parent := inputs.before.get(name)) is not None
        )
    ]
    return 2 * len(passing) > len(there)


def _was_column_declined(source: str, inputs: RuleInputs) -> bool:
    """Whether prod's source already has the column, and no model of prod shows it."""
    table, _, column = source.rpartition(".")
    end = f".{plain_name(table)}"
    known = any(
        f".{plain_name(name)}".endswith(end)
        and column.lower() in map(str.lower, model.columns_to_types or {})
        for name, model in inputs.before.items()
        if table and model.kind.is_external
    )
    return known and not any(
        source in list_exposed_columns(model).values() for model in inputs.before.values()
    )


def _list_hiding_models(source: str, inputs: RuleInputs) -> Iterator[str]:
    """Lists prod's models that read a column of a source and do not show it as it is."""
    table, _, column = source.rpartition(".")
    if not table:
        return
    end = f".{plain_name(table)}"
    for name, model in inputs.before.items():
        if (
            any(f".{plain_name(parent)}".endswith(end) for parent in model.depends_on)
            and column.lower() in list_query_names(model)
            and source not in list_exposed_columns(model).values()
        ):
            yield name


def _identifies_rows_of_source(source: str, inputs: RuleInputs) -> bool:
    """Whether a number of a member or a policy is the key of its table, like an `_id`."""
    table, _, column = source.rpartition(".")
    if not is_number_of_contract(column):
        return False
    return any(
        plain_name(fqn).endswith(plain_name(table)) and column.lower() in _list_own_key(model)
        for fqn, model in inputs.after.items()
    )


def _list_own_key(model: Model) -> frozenset[str]:
    """Lists the columns of the declared unique key; of the grain without one."""
    if model.unique_key:
        return frozenset(list_column_names(model.unique_key))
    return frozenset(name for grain in model.grains for name in list_column_names(grain))


def _does_column_stay_inside(
    name: str, source: str, after: Model, inputs: RuleInputs, *, is_new: bool
) -> bool:
    """Whether a column stays inside a schema that already has it.

    A new model in that schema shows it to nobody else. If the source itself got the column just
    now, the finding is on the source, unless the source only takes the data in.
    """
    schema, table = _read_schema(after.fqn), plain_name(source.rpartition(".")[0])
    if _read_schema(table) != schema:
        return is_new and (schema, name) in inputs.columns_by_schema
    if is_new:
        return True
    held = any(
        plain_name(fqn).endswith(table) and source.rpartition(".")[2] in map(str.lower, columns)
        for fqn, model in inputs.before.items()
        if (columns := model.columns_to_types or {})
    )
    return not held and not any(
        plain_name(fqn).endswith(table) and _reads_only_sources(model, inputs)
        for fqn, model in inputs.after.items()
    )


def _reads_only_sources(model: Model, inputs: RuleInputs) -> bool:
    """Whether a model reads only sources of the project, and no model."""
    parents = [inputs.after.get(name) for name in model.depends_on]
    return bool(parents) and all(parent is None or parent.kind.is_external for parent in parents)


def _read_schema(table: str) -> str:
    """Reads the schema from a table's name, in lower case; empty if it has none."""
    return plain_name(table).rpartition(".")[0].rpartition(".")[2].lower()


def _list_leaving_columns(
    exposed: Mapping[str, str],
    after: Model,
    inputs: RuleInputs,
    allowed: Sequence[str],
    queries: ModelQueries | None,
) -> dict[str, str]:
    """Lists the columns that leave the allowed schemas in this model, and in no model above it."""
    if _may_schema_hold_personal_data(after, allowed):
        return {}
    above = [inputs.after.get(name) for name in after.depends_on]
    outside = [
        (f".{model.fqn}".replace('"', "").lower(), list_exposed_columns(model, queries))
        for model in above
        if model is not None
        and not model.kind.is_external
        and not _may_schema_hold_personal_data(model, allowed)
    ]
    computed = trace_column_sources(after, queries)

    def leaves_above(name: str) -> bool:
        return any(
            column in columns and model.endswith(f".{table}" if table else "")
            for table, column in computed.get(name, ())
            for model, columns in outside
        )

    return {name: source for name, source in exposed.items() if not leaves_above(name)}


def _may_schema_hold_personal_data(model: Model, allowed: Sequence[str]) -> bool:
    schema = model.fully_qualified_table.db.lower()
    return any(fnmatchcase(schema, pattern.lower()) for pattern in allowed)


REMOVED = find_rule("removed-audit")
WEAKENED = find_rule("weakened-audit")
OWNER_AGREES = "its owner agrees with the new condition"


def _list_gone_promises(pair: ModelPair) -> tuple[list[str], bool]:
    """Lists promises that the head no longer makes, and whether one of them stopped the run."""
    old, new = pair.both_promises
    types = list_known_types(pair.after)
    left = None if types is None else set(types)
    lost: list[str] = []
    blocking = False
    for column, stops in old.not_null.items():
        # The audits of a dropped column go with it.
        if column not in new.not_null and (left is None or column in left):
            lost.append(f"not_null({column})")
            blocking = blocking or stops
    for key, stops in old.unique.items():
        if not new.makes_unique(key) and (left is None or key <= left):
            lost.append(_name_unique(key))
            blocking = blocking or stops
    for call, stops in old.other.items():
        name = call.partition("(")[0]
        if call in old.partial and new.holds_for_all(old.partial[call]):
            continue
        if not any(kept.partition("(")[0] == name for kept in new.other) and (
            name not in new.skipped
        ):
            lost.append(call)
            blocking = blocking or stops
    return lost, blocking


@on_change(REMOVED)
def find_removed_audits(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds audits that the model no longer has."""
    lost, blocking = _list_gone_promises(pair)
    weaker = _list_widened_keys(pair) | _list_changed_conditions(pair).keys()
    lost = [item for item in lost if item not in weaker]
    if lost:
        yield RuleObservation(
            REMOVED,
            f"No longer checked: {quote_names(lost)}."
            + ("" if blocking else " None of them stopped a run."),
            "the audits are back, or their owner agrees that they may go",
            severity=None if blocking else "medium",
            model=pair.after,
            subject=tuple(sorted(lost)),
            anchors=("audits", "grain", "name"),
        )


def _list_widened_keys(pair: ModelPair) -> set[str]:
    """Lists promises whose key is now checked with more columns: weaker, but not gone."""
    old, new = pair.both_promises
    return {
        _name_unique(key)
        for key in old.unique
        if not new.makes_unique(key) and any(key < other for other in new.unique)
    }


def _list_changed_conditions(pair: ModelPair) -> dict[str, str]:
    """Maps lost promises that now hold for a part of the rows to the condition of that part."""
    old, new = pair.both_promises
    found: dict[str, str] = {}
    for promise in new.partial.values():
        for column in promise.not_null:
            if column in old.not_null and column not in new.not_null:
                found[f"not_null({column})"] = promise.condition
        for key in promise.unique:
            if key in old.unique and not new.makes_unique(key):
                found[_name_unique(key)] = promise.condition
    return found


def _name_unique(key: frozenset[str]) -> str:
    return f"unique({', '.join(sorted(key))})"


@on_change(WEAKENED)
def find_weakened_audits(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds audits that the model still has, but that check less or no longer stop a run."""
    old, new = pair.both_promises
    weaker: list[str] = []
    weaker += [f"{name} is skipped" for name in sorted(new.skipped - old.skipped)]
    for before, after in ((old.not_null, new.not_null), (old.other, new.other)):
        weaker += [
            f"{name} no longer stops a run"
            for name, stops in before.items()
            if stops and name in after and not after[name]
        ]
    weaker += [
        f"{_name_unique(key)} no longer stops a run"
        for key, stops in old.unique.items()
        if stops and key in new.unique and not new.unique[key]
    ]
    weaker += [
        f"{item} is checked with more columns only" for item in sorted(_list_widened_keys(pair))
    ]
    weaker += [
        f"{item} is checked for rows with {condition} only"
        for item, condition in sorted(_list_changed_conditions(pair).items())
    ]
    if weaker:
        yield RuleObservation(
            WEAKENED,
            f"Checks less: {quote_names(weaker)}.",
            "the audit is as strict as before, or its owner agrees",
            model=pair.after,
            subject=tuple(sorted(weaker)),
            anchors=("audits",),
        )
    yield from _find_rewritten_audits(pair)


def _find_rewritten_audits(pair: ModelPair) -> Iterator[RuleObservation]:
    """Observes audits with other arguments or another query; stricter ones are not reported."""
    old, new = pair.both_promises
    verdicts: dict[str, Strictness] = {}
    rewritten = {
        name
        for name, text in old.queries.items()
        if name in new.queries and _strip_blanks(new.queries[name]) != _strip_blanks(text)
    }
    for call, arguments in old.arguments.items():
        name = call.partition("(")[0]
        again = [other for other in new.other if other.partition("(")[0] == name]
        if not again or (call in new.other and name not in rewritten):
            continue
        if call in old.partial and new.holds_for_all(old.partial[call]):
            continue  # it held for a part of the rows
        about = name if name in rewritten else call
        later = call if call in new.other else again[0] if len(again) == 1 else None
        if later is None:
            verdicts[about] = "unknown"
        elif name in rewritten or (
            name in old.queries and not are_same_arguments(arguments, new.arguments[later])
        ):
            dialect = pair.after.dialect
            before = bind_audit_arguments(old.queries[name], arguments, dialect)
            after = bind_audit_arguments(new.queries[name], new.arguments[later], dialect)
            verdicts[about] = compare_audit_queries(before, after, dialect)
        else:
            verdicts[about] = compare_audit_arguments(name, arguments, new.arguments[later])
    weaker = sorted(name for name, verdict in verdicts.items() if verdict == "weaker")
    unclear = sorted(name for name, verdict in verdicts.items() if verdict == "unknown")
    if weaker or unclear:
        effects = [f"{quote_names(weaker)} lets more pass"] if weaker else []
        effects += [f"{quote_names(unclear)} checks something else"] if unclear else []
        yield RuleObservation(
            WEAKENED,
            f"Than before, {' and '.join(effects)}.",
            OWNER_AGREES,
            model=pair.after,
            subject=(*weaker, *unclear),
            anchors=("audits",),
        )


@on_project(WEAKENED)
def find_weakened_standalone_audits(inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds audits that belong to no model, with another query or other defaults."""
    for name, audit in sorted(inputs.standalone_after.items()):
        before, path = inputs.standalone_before.get(name), inputs.find_path(audit)
        if before is None or path is None or path not in (inputs.changed_files or ()):
            continue
        yield from _observe_rarer_audit(name, before, audit, path, inputs)
        dialect = audit.dialect or inputs.default_dialect
        old, new = (
            bind_audit_arguments(side.query_.sql, side.defaults, dialect)
            for side in (before, audit)
        )
        verdict = "stricter" if old == new else compare_audit_queries(old, new, dialect)
        if verdict != "stricter":
            effect = (
                "lets more pass than before" if verdict == "weaker" else "checks something else now"
            )
            yield RuleObservation(
                WEAKENED,
                f"The standalone audit `{name}` {effect}.",
                OWNER_AGREES,
                path=path,
                line=find_anchor_line(inputs.read_text_after(path) or "", ("WHERE", "SELECT")),
                subject=(name,),
            )


def _observe_rarer_audit(
    name: str, before: StandaloneAudit, after: StandaloneAudit, path: str, inputs: RuleInputs
) -> Iterator[RuleObservation]:
    """Observes a standalone audit that its own schedule runs less often: it finds faults later."""
    old, new = find_period(before.croniter), find_period(after.croniter)
    if old is not None and new is not None and new > old:
        yield RuleObservation(
            WEAKENED,
            f"The standalone audit `{name}` runs by {after.cron}, and ran by {before.cron}: it "
            "finds a fault later.",
            "its owner agrees with the new schedule",
            path=path,
            line=find_anchor_line(inputs.read_text_after(path) or "", ("cron",)),
            subject=(name, "cron"),
        )


def _strip_blanks(text: str) -> str:
    return "".join(text.split()).rstrip(";")
