"""Who may see what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.sql import (
    ModelQueries,
    list_exposed_columns,
    list_query_names,
    plain_name,
    trace_column_sources,
)

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

GRANTS = find_rule("grants-changed")
PERSONAL = find_rule("personal-data-exposed")


@on_change(GRANTS)
def find_grant_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Rights that are given or taken."""
    old, new = _list_rights(pair.before), _list_rights(pair.after)
    if old == new:
        return
    given, taken = sorted(new - old), sorted(old - new)
    told = [f"{right} to {who}" for right, who in given]
    told += [f"no longer {right} to {who}" for right, who in taken]
    yield RuleObservation(
        GRANTS,
        f"Rights change: {quote_names(told)}.",
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
    """Columns about people that the model did not show before."""
    yield from observe_exposed_columns(pair.after, pair.before, pair, inputs)


@on_new_model(PERSONAL)
def find_personal_data_in_new_models(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Columns about people in a model that is new."""
    yield from observe_exposed_columns(model, None, None, inputs)


def observe_exposed_columns(
    after: Model, before: Model | None, pair: ModelPair | None, inputs: RuleInputs
) -> Iterator[RuleObservation]:
    """Personal columns of `after` that `before` (None for a new model) has not."""
    queries = pair.queries if pair is not None else None
    new = list_exposed_columns(after, queries)
    old = list_exposed_columns(before, queries) if before is not None else {}
    came = {name: source for name, source in new.items() if name not in old}
    allowed = inputs.personal_schemas
    if allowed is not None:
        came = _list_leaving_columns(came, after, inputs, allowed, queries)
    else:
        came = {
            name: source
            for name, source in came.items()
            if not _stays_inside(name, source, after, inputs, is_new=before is None)
        }
    if not came:
        return
    # Taking data in is what staging is for; passing them on is a decision.
    lands = _reads_only_sources(after, inputs)
    # A model that read the column and did not show it kept it back on purpose.
    kept_back = list_query_names(before, queries) & {
        s.rpartition(".")[2].lower() for s in came.values()
    }
    yield RuleObservation(
        PERSONAL,
        f"Personal data: {quote_names(came)}"
        + (
            f" (from {quote_names(inputs.names.short_name(s) for s in set(came.values()) if s)})"
            if any(came.values())
            else ""
        )
        + (
            " were read and not shown before, and now are."
            if kept_back
            else " are taken in from the source."
            if lands
            else " leave the models that held them and reach the readers of this one."
        ),
        "who may see them is settled, or they are hashed or left out",
        # If a team has said which schemas may hold them, this one is none of these.
        severity="low" if lands and allowed is None and not kept_back else None,
        model=after,
        subject=tuple(sorted(came)),
        anchors=tuple(came),
    )


def _stays_inside(
    name: str, source: str, after: Model, inputs: RuleInputs, *, is_new: bool
) -> bool:
    """Whether a column passes between layers of a schema that holds it.

    A model that is new there shows it to nobody else, and neither does one whose source has just
    got it: that is reported of the source, unless the source only takes it in.
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
    """Whether a model reads sources of the project alone, and none of its models."""
    parents = [inputs.after.get(name) for name in model.depends_on]
    return bool(parents) and all(parent is None or parent.kind.is_external for parent in parents)


def _read_schema_name(table: str) -> str:
    """The schema of a table's name, in lower case; nothing if it has none."""
    return plain_name(table).rpartition(".")[0].rpartition(".")[2].lower()


def _list_leaving_columns(
    came: Mapping[str, str],
    after: Model,
    inputs: RuleInputs,
    allowed: Sequence[str],
    queries: ModelQueries | None,
) -> dict[str, str]:
    """The columns that leave the schemas which may hold them here, and not in a model above."""
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

    return {name: source for name, source in came.items() if not leaves_above(name)}


def _may_hold(model: Model, allowed: Sequence[str]) -> bool:
    schema = model.fully_qualified_table.db.lower()
    return any(fnmatchcase(schema, pattern.lower()) for pattern in allowed)
