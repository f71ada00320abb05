"""Changes of the MODEL block that concern the stored table: batches, guards, layout, merges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import list_column_names

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

BATCH = find_rule("batch-size-removed")
GUARDS = find_rule("guard-removed")
LAYOUT = find_rule("table-layout-changed")
# What Spark reads back otherwise than it was written, by format. Tried with Spark 3.5.
_LOST_IN_TEXT = {
    "csv": "CSV files do not keep all values: blanks at the ends of texts and microseconds go, an "
    "empty text becomes NULL, a line break ends the row, and arrays and structs are refused.",
    "json": "JSON files do not keep all values: microseconds go.",
    "text": "Text files hold one column.",
}
MERGE = find_rule("merge-logic-changed")


@on_change(BATCH)
def batch_size(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Batches that are gone or ten times larger."""
    old, new = pair.before.batch_size, pair.after.batch_size
    if old is None or not pair.after.kind.is_incremental_by_time_range:
        return
    if pair.before.kind.name == pair.after.kind.name and (new is None or new >= 10 * old):
        yield RuleObservation(
            BATCH,
            f"batch_size changes from {old} to {'none' if new is None else new}: one job computes "
            "far more intervals.",
            "the job is known to have the memory for it",
            model=pair.after,
            anchors=("batch_size", "time_column"),
        )


@on_change(GUARDS)
def find_guard_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Settings that keep a table from being rebuilt, emptied or altered by mistake."""
    old, new = pair.before.kind, pair.after.kind
    lost: list[str] = []
    before, after = (getattr(side, "on_destructive_change", None) for side in (old, new))
    if before is not None and after is not None and before.is_error and not after.is_error:
        lost.append(f"on_destructive_change {after.value.lower()}")
    before, after = (getattr(side, "on_additive_change", None) for side in (old, new))
    if before is not None and after is not None and before.is_error and not after.is_error:
        lost.append(f"on_additive_change {after.value.lower()}")
    if pair.before.disable_restatement and not pair.after.disable_restatement:
        lost.append("disable_restatement false")
    if getattr(new, "auto_restatement_cron", None) and not getattr(
        old, "auto_restatement_cron", None
    ):
        lost.append("auto_restatement_cron (history is computed again by itself)")
    if not pair.before.forward_only and pair.after.forward_only and old.name == new.name:
        lost.append("forward_only true (history keeps the old logic)")
    if pair.before.forward_only and not pair.after.forward_only and old.name == new.name:
        lost.append("forward_only false (a change builds all of history again)")
    if not pair.before.allow_partials and pair.after.allow_partials:
        lost.append("allow_partials true (incomplete intervals are published)")
    if pair.after.physical_version and pair.after.physical_version != pair.before.physical_version:
        lost.append("physical_version (a table is taken over, whatever it was computed by)")
    if _writes_prod_directly(pair.after) and not _writes_prod_directly(pair.before):
        lost.append("virtual_environment_mode dev_only (prod's table is written directly)")
    if lost:
        yield RuleObservation(
            GUARDS,
            f"Changed: {quote_names(lost)}.",
            "the owner confirms that the guard may go",
            model=pair.after,
            subject=tuple(item.split(" (")[0] for item in lost),
            anchors=(*(item.split()[0] for item in lost), "kind"),
        )


def _writes_prod_directly(model: Model) -> bool:
    mode = getattr(model, "virtual_environment_mode", None)
    return mode is not None and not mode.is_full


@on_change(LAYOUT)
def find_layout_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Partitions, clustering and formats: another table with the same rows."""
    if pair.before.kind.name != pair.after.kind.name:
        return
    changed: list[str] = []
    before, after = _list_partitions(pair.before), _list_partitions(pair.after)
    if before != after:
        changed.append(f"partitioned_by {', '.join(after) or 'none'}")
    for name in ("table_format", "storage_format"):
        if getattr(pair.before, name) != getattr(pair.after, name):
            changed.append(f"{name} {getattr(pair.after, name) or 'default'}")
    if _list_texts(pair.before.clustered_by) != _list_texts(pair.after.clustered_by):
        changed.append(f"clustered_by {', '.join(_list_texts(pair.after.clustered_by)) or 'none'}")
    replaced = pair.after.kind.is_incremental_by_partition and before != after
    storage = str(pair.after.storage_format or "").lower()
    is_other_format = pair.before.storage_format != pair.after.storage_format
    lost = _LOST_IN_TEXT.get(storage) if is_other_format else None
    if changed:
        yield RuleObservation(
            LAYOUT,
            f"The physical layout changes: {quote_names(changed)}."
            + (
                " A forward-only table keeps its old layout until someone rebuilds it."
                if pair.after.forward_only
                else ""
            )
            + (" A run now replaces other rows: those of the new partitions." if replaced else "")
            + (f" {lost}" if lost else ""),
            "the new layout serves the readers' filters",
            severity="high" if replaced or lost else None,
            model=pair.after,
            subject=tuple(item.split()[0] for item in changed),
            anchors=tuple(item.split()[0] for item in changed),
        )


def _list_partitions(model: Model) -> list[str]:
    """Partition columns by name: state gives some functions back in another form."""
    return sorted(list_column_names(list(model.partitioned_by)))


def _list_texts(items: Any) -> list[str]:
    return [item.sql() for item in items or []]


@on_change(MERGE)
def merge_logic(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """WHEN MATCHED, merge filters, and validity settings of dimensions."""
    old, new = pair.before.kind, pair.after.kind
    if old.name != new.name:
        return
    changed = [
        name
        for name in (
            "when_matched",
            "merge_filter",
            "invalidate_hard_deletes",
            "updated_at_as_valid_from",
            "updated_at_name",
            "valid_from_name",
            "valid_to_name",
            "execution_time_as_valid_from",
            "insert_overwrite",
        )
        if _value_text(getattr(old, name, None)) != _value_text(getattr(new, name, None))
    ]
    watched_old, watched_new = getattr(old, "columns", None), getattr(new, "columns", None)
    if watched_old is not None and _value_text(watched_old) != _value_text(watched_new):
        changed.append("columns")
    if changed:
        yield RuleObservation(
            MERGE,
            f"Stored rows are matched or closed differently: {quote_names(changed)} changed.",
            "the owner confirms what happens to rows that are already stored",
            model=pair.after,
            subject=tuple(changed),
            anchors=tuple(changed),
        )


def _value_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(sorted(_value_text(item) for item in value))
    return str(value.sql()).lower() if hasattr(value, "sql") else str(value)
