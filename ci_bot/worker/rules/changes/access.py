"""Access to data: rights, and columns with personal data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.personal_data import (
    list_exposed_columns,
    list_query_names,
    trace_column_sources,
)
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.sql import (
    ModelQueries,
    plain_name,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

GRANTS = find_rule("grants-changed")
PERSONAL = find_rule("personal-data-exposed")


@on_change(GRANTS)
def find_grant_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Rights that the change grants or revokes."""
    old, new = _list_rights(pair.before), _list_rights(pair.after)
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


def _list_rights(model: Model) -> set[tuple[str, str]]:
    config = model.grants or {}
    return {(right, str(who)) for right, whom in config.items() for who in whom}


@on_change(PERSONAL)
def find_personal_data(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Columns with personal data that the model did not have before."""
    yield from observe_exposed_columns(pair.after, pair.before, pair, inputs)


@on_new_model(PERSONAL)
def find_personal_data_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Columns with personal data in a new model."""
    yield from observe_exposed_columns(model, None, None, inputs)


def observe_exposed_columns(
    after: Model, before: Model | None, pair: ModelPair | None, inputs: RuleInputs
) -> Iterator[RuleObservation]:
    """Observes personal columns of `after` that `before` (None for a new model) does not have."""
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
            if not _stays_inside(name, source, after, inputs, is_new=before is None)
        }
    if not exposed:
        return
    # A staging model takes data in; to pass them on is a decision.
    lands = _reads_only_sources(after, inputs)
    # If a model read the column and left it out of its result, it did so on purpose.
    kept_back = list_query_names(before, queries) & {
        s.rpartition(".")[2].lower() for s in exposed.values()
    }
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
            " were read and not shown before, and now are."
            if kept_back
            else f" are shown as they are; {quote_names(hiding)} hashes them or leaves them out."
            if lands and hiding
            else " are taken in from the source."
            if lands
            else " leave the models that held them and reach the readers of this one."
        ),
        "who may see them is settled, or they are hashed or left out",
        # If the policy names schemas that may hold them, this schema is none of these.
        severity="low" if lands and allowed is None and not (kept_back or hiding) else None,
        model=after,
        subject=tuple(sorted(exposed)),
        anchors=tuple(exposed),
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


def _stays_inside(
    name: str, source: str, after: Model, inputs: RuleInputs, *, is_new: bool
) -> bool:
    """Whether a column stays inside a schema that has it already.

    A new model in that schema shows it to nobody else. If the source has just got the column, the
    source has the finding, unless it only takes the data in.
    """
    schema, table = _read_schema_name(after.fqn), plain_name(source.rpartition(".")[0])
    if _read_schema_name(table) != schema:
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


def _read_schema_name(table: str) -> str:
    """Reads the schema from a table's name, in lower case; empty if it has none."""
    return plain_name(table).rpartition(".")[0].rpartition(".")[2].lower()


def _list_leaving_columns(
    exposed: Mapping[str, str],
    after: Model,
    inputs: RuleInputs,
    allowed: Sequence[str],
    queries: ModelQueries | None,
) -> dict[str, str]:
    """Lists the columns that leave the allowed schemas in this model, and not in a model above."""
    if _may_hold(after, allowed):
        return {}
    above = [inputs.after.get(name) for name in after.depends_on]
    outside = [
        (f".{model.fqn}".replace('"', "").lower(), list_exposed_columns(model, queries))
        for model in above
        if model is not None and not model.kind.is_external and not _may_hold(model, allowed)
    ]
    computed = trace_column_sources(after, queries)

    def leaves_above(name: str) -> bool:
        return any(
            column in columns and model.endswith(f".{table}" if table else "")
            for table, column in computed.get(name, ())
            for model, columns in outside
        )

    return {name: source for name, source in exposed.items() if not leaves_above(name)}


def _may_hold(model: Model, allowed: Sequence[str]) -> bool:
    schema = model.fully_qualified_table.db.lower()
    return any(fnmatchcase(schema, pattern.lower()) for pattern in allowed)
