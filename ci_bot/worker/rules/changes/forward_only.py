"""Forward-only models: production tables that a merge alters in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlmesh.core.schema_diff import get_schema_differ
from sqlmesh.utils.errors import SQLMeshError

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sqlmesh_compat import is_scd_type_2

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlmesh.core.model import Model

DESTRUCTIVE = find_rule("forward-only-destructive")
MIXED = find_rule("forward-only-history-mixed")
NOT_ADDED = find_rule("column-not-added")


@on_change(DESTRUCTIVE)
def find_destructive_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds columns that SQLMesh would drop from a table whose history cannot be rebuilt (R05)."""
    after = pair.after
    allowed = getattr(after.kind, "on_destructive_change", None)
    in_place = after.forward_only or (inputs.forward_only_plan and allowed is not None)
    if pair.renamed or not in_place or after.kind.name != pair.before.kind.name:
        return
    if pair.before.data_hash == after.data_hash:
        return  # SQLMesh compares columns only if the data change
    lost, compared = _list_dropped_columns(pair.before, after)
    if not lost:
        return
    by_input = after.fqn in inputs.allowed_destructive
    if allowed is not None and allowed.is_error and compared and not by_input:
        yield RuleObservation(
            DESTRUCTIVE,
            f"Forward-only, and {quote_names(lost)} would be dropped or retyped in the production "
            "table. "
            "SQLMesh refuses this plan." + _explain_refusal(lost, pair.before, after),
            "the columns stay, or the change is allowed on purpose (input `allow-destructive`)",
            model=after,
            subject=tuple(lost),
            anchors=("forward_only", "kind"),
        )
        return
    lost = [name for name in lost if not _is_column_stored_alike(name, pair.before, after)]
    if not lost:
        return  # only the type's name changed: SQLMesh does not refuse that
    if compared and allowed is not None and allowed.is_ignore:
        yield RuleObservation(
            DESTRUCTIVE,
            f"Forward-only with on_destructive_change ignore: SQLMesh leaves {quote_names(lost)} "
            "in the production table as they are. A column that the query no longer gives is NULL "
            "in what is written from now on, and one of another type keeps the old type.",
            "its owner confirms that the table and the query may differ",
            severity="high",
            model=after,
            subject=tuple(lost),
            anchors=("on_destructive_change", "forward_only"),
        )
        return
    yield RuleObservation(
        DESTRUCTIVE,
        f"Forward-only {_explain_acceptance(allowed, compared, by_input)}: {quote_names(lost)} "
        "are dropped or retyped in the production table, and its history cannot be built again.",
        "its owner confirms that this data may go",
        severity="high",
        model=after,
        subject=tuple(lost),
        anchors=("on_destructive_change", "forward_only"),
    )


def _explain_refusal(lost: list[str], before: Model, after: Model) -> str:
    """Explains why SQLMesh refuses a change that does not look like a change of a type.

    Returns an empty text if it is one.
    """
    if set(lost) <= list_validity_columns(after):
        return (
            " (It reads the type of these columns back from its state as another one, so any "
            "change of such a model is refused.)"
        )
    if all(_is_column_stored_alike(name, before, after) for name in lost):
        return (
            " (It infers another name of the same type, such as VARCHAR of a function for the "
            "STRING of a source: a cast to the type of the table keeps the columns.)"
        )
    return ""


def _explain_acceptance(allowed: Any, compared: bool, by_input: bool) -> str:
    """Explains why SQLMesh does not refuse the change: the model's own setting counts first."""
    if not compared or allowed is None:
        return "and its columns cannot all be typed, so SQLMesh lets it pass"
    if by_input and allowed.is_error:
        return "and allowed by the input `allow-destructive`"
    return f"with on_destructive_change {allowed.value.lower()}"


def _is_column_stored_alike(name: str, before: Model, after: Model) -> bool:
    """Whether both sides have the column, with one type in the engine's dialect."""
    old, new = (
        {column.lower(): kind for column, kind in (model.columns_to_types or {}).items()}.get(
            name.lower()
        )
        for model in (before, after)
    )
    if old is None or new is None:
        return False
    dialect = after.dialect
    return bool(old.sql(dialect=dialect) == new.sql(dialect=dialect))


@on_change(NOT_ADDED)
def find_columns_not_added(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds new columns of a table that SQLMesh alters in place, but must not extend."""
    after = pair.after
    allowed = getattr(after.kind, "on_additive_change", None)
    if allowed is None or not allowed.is_ignore or not _is_altered_in_place(pair, inputs):
        return
    added = _list_added_columns(pair.before, after)
    if added:
        yield RuleObservation(
            NOT_ADDED,
            f"{quote_names(added)} {'is' if len(added) == 1 else 'are'} new in the query, and "
            "`on_additive_change` ignore keeps SQLMesh from adding columns to the production "
            "table: they never arrive there, and no run fails.",
            "`on_additive_change` is allow for this change, or the query leaves the columns out",
            model=after,
            subject=tuple(added),
            anchors=(*added, "on_additive_change"),
        )


def _is_altered_in_place(pair: ModelPair, inputs: RuleInputs) -> bool:
    """Whether prod's table stays and is altered; otherwise the change builds a new table."""
    before, after = pair.before, pair.after
    if pair.renamed or before.kind.name != after.kind.name or before.data_hash == after.data_hash:
        return False
    mode = getattr(after, "virtual_environment_mode", None)
    return bool(
        after.forward_only
        or (mode is not None and mode.is_dev_only)
        or after.fqn in inputs.forward_only
    )


def _list_added_columns(before: Model, after: Model) -> list[str]:
    """Lists new columns and new fields of columns; by name only if types are unknown."""
    known = _list_types_of_both_sides(before, after)
    if known is None:
        return []
    old, new = known
    own = list_validity_columns(after)
    if not _are_both_sides_typed(old, new):
        return sorted(set(new) - set(old) - own)
    try:
        operations = get_schema_differ(after.dialect).compare_columns(after.fqn, old, new)
    except SQLMeshError:
        return sorted(set(new) - set(old) - own)
    return sorted({_name_operation_column(one) for one in operations if one.is_additive} - own)


def list_validity_columns(model: Model) -> set[str]:
    """Lists the names of valid_from and valid_to in an SCD type 2 model; empty for other kinds."""
    kind = model.kind
    if not is_scd_type_2(kind):
        return set()
    return {kind.valid_from_name.name.lower(), kind.valid_to_name.name.lower()}


def _list_dropped_columns(before: Model, after: Model) -> tuple[list[str], bool]:
    """Lists columns that go or change their type, and whether SQLMesh compares them.

    SQLMesh compares definitions only if all types are known; then its own operations count.
    """
    known = _list_types_of_both_sides(before, after)
    if known is None:
        return [], False
    old, new = known
    if not _are_both_sides_typed(old, new):
        return sorted(set(old) - set(new)), False
    try:
        operations = get_schema_differ(after.dialect).compare_columns(after.fqn, old, new)
    except SQLMeshError:
        return [], False
    found = [
        _name_operation_column(operation) for operation in operations if operation.is_destructive
    ]
    return sorted(set(found)), True


def _list_types_of_both_sides(
    before: Model, after: Model
) -> tuple[dict[str, exp.DataType], dict[str, exp.DataType]] | None:
    """Lists columns and types of both sides, the old one as in the state.

    None if a side does not show them.
    """
    old, new = _read_back_model(before).columns_to_types, after.columns_to_types
    if not old or not new or "*" in old or "*" in new:
        return None
    return old, new


def _are_both_sides_typed(*sides: dict[str, exp.DataType]) -> bool:
    return not any(kind.is_type("UNKNOWN") for side in sides for kind in side.values())


def _read_back_model(model: Model) -> Model:
    """Reads the model back from JSON, as SQLMesh reads prod's model from its state.

    Some types change on that way. A base branch that counts as prod is not in the state, and its
    plan must not look better than prod's.
    """
    try:
        stored = type(model).parse_raw(model.json())
    except Exception:  # a model that cannot be stored is compared as it is
        return model
    return stored if stored.columns_to_types else model


def _name_operation_column(operation: Any) -> str:
    parts = getattr(operation, "column_parts", None) or []
    return ".".join(str(getattr(part, "name", part)) for part in parts) or "columns"


@on_change(MIXED)
def find_mixed_history(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds tables with the old logic in their history and the new logic in new intervals."""
    if pair.renamed or not pair.after.forward_only:
        return
    if pair.both_forms is None or pair.both_meanings is None:
        return
    was, now = (form.results for form in pair.both_forms)
    other = [name for name in was if name in now and was[name] != now[name]]
    added = [name for name in now if name not in was]
    old, new = pair.both_meanings
    rows = (old.filters, old.joins, old.groups, old.distincts, old.unions) != (
        new.filters, new.joins, new.groups, new.distincts, new.unions
    )  # fmt: skip
    if other or rows:
        what = [f"values of {quote_names(other)}"] if other else []
        what += ["which rows it has"] if rows else []
        yield RuleObservation(
            MIXED,
            f"Forward-only, and {' and '.join(what)} change: stored history keeps the old meaning "
            "and new intervals get the new one, so the two cannot be compared.",
            "the owner confirms the break in the history, or restates it after the merge",
            model=pair.after,
            subject=tuple(other),
            anchors=(*other, "forward_only"),
        )
    elif added and not _ignores_new_columns(pair.after):
        yield RuleObservation(
            MIXED,
            f"Forward-only: {quote_names(added)} stays NULL in the rows that are stored already.",
            "readers expect NULL in the history, or it is restated after the merge",
            severity="info",
            model=pair.after,
            subject=tuple(added),
            anchors=tuple(added),
        )


def _ignores_new_columns(model: Model) -> bool:
    allowed = getattr(model.kind, "on_additive_change", None)
    return allowed is not None and bool(allowed.is_ignore)
