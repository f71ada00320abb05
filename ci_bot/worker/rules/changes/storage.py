"""Changes of the stored table: batches, guards, layout, merges, and table properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlglot import exp

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.storage import OVERWRITING, count_seconds_in_partition
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change, on_new_model
from ci_bot.worker.rules.statement_rules import iterate_model_statements
from ci_bot.worker.sql import list_column_names

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

BATCH = find_rule("batch-size-removed")
GUARDS = find_rule("guard-removed")
LAYOUT = find_rule("table-layout-changed")
# Values that Spark reads back differently than it wrote them, by format. Tried with Spark 3.5.
_LOST_IN_TEXT = {
    "csv": "CSV files do not keep all values: blanks at the ends of texts and microseconds go, an "
    "empty text becomes NULL, a line break ends the row, and arrays and structs are refused.",
    "json": "JSON files do not keep all values: microseconds go.",
    "text": "Text files hold one column.",
}
MERGE = find_rule("merge-logic-changed")


@on_change(BATCH)
def find_batch_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds batches that are gone, ten times larger, or too large for a model that reads itself."""
    old, new = pair.before.batch_size, pair.after.batch_size
    if old is None or not pair.after.kind.is_incremental_by_time_range:
        return
    if old == 1 and new != 1 and pair.after.depends_on_self:
        yield RuleObservation(
            BATCH,
            f"batch_size changes from 1 to {'none' if new is None else new}, and the model reads "
            "its own earlier intervals: within a larger batch they are not written yet, so rows "
            "are missing or start from nothing.",
            "batch_size stays 1, or the query computes each interval of a batch alone",
            severity="high",
            model=pair.after,
            anchors=("batch_size", "time_column"),
        )
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
    """Finds lost settings that protect a table from a rebuild or a change by mistake."""
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
    if (
        old.name == new.name
        and not pair.before.disable_restatement
        and pair.after.disable_restatement
    ):
        lost.append("disable_restatement true (corrections of past days no longer reach the table)")
    if getattr(new, "auto_restatement_cron", None) and not getattr(
        old, "auto_restatement_cron", None
    ):
        lost.append("auto_restatement_cron (history is computed again automatically)")
    if not pair.before.forward_only and pair.after.forward_only and old.name == new.name:
        lost.append("forward_only true (history keeps the old logic)")
    if pair.before.forward_only and not pair.after.forward_only and old.name == new.name:
        lost.append("forward_only false (a change builds all of history again)")
    if not pair.before.allow_partials and pair.after.allow_partials:
        lost.append("allow_partials true (incomplete intervals are published)")
    if pair.after.physical_version and pair.after.physical_version != pair.before.physical_version:
        lost.append("physical_version (an existing table is used, even if another query built it)")
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


@on_new_model(GUARDS)
def find_missing_guards(model: Model, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds settings of a new model that carry the risk a guard would report."""
    lacking: dict[str, str] = {}
    if model.allow_partials and model.kind.is_incremental:
        lacking["allow_partials true"] = (
            "a run in the middle of an interval publishes a part of it, and nothing tells that "
            "apart from late or lost rows"
        )
    if model.physical_version:
        lacking["physical_version"] = "an existing table is used, even if another query built it"
    for name, effect in lacking.items():
        yield RuleObservation(
            GUARDS,
            f"The new model has `{name}`: {effect}.",
            "the owner confirms that readers of the table know it",
            model=model,
            subject=(name,),
            anchors=(name.split()[0],),
        )


def _writes_prod_directly(model: Model) -> bool:
    mode = getattr(model, "virtual_environment_mode", None)
    return mode is not None and not mode.is_full


@on_change(LAYOUT)
def find_layout_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed partitions, clustering and formats: another table with the same rows."""
    if pair.before.kind.name != pair.after.kind.name:
        return
    changed: list[str] = []
    before, after = _list_partitions(pair.before), _list_partitions(pair.after)
    sizes = [
        sorted(map(count_seconds_in_partition, side.partitioned_by))
        for side in (pair.before, pair.after)
    ]
    if before != after or (sizes[0] != sizes[1] and all(map(any, sizes))):
        changed.append(f"partitioned_by {', '.join(after) or 'none'}")
    for name in ("table_format", "storage_format"):
        if getattr(pair.before, name) != getattr(pair.after, name):
            changed.append(f"{name} {getattr(pair.after, name) or 'default'}")
    if _render_expressions(pair.before.clustered_by) != _render_expressions(
        pair.after.clustered_by
    ):
        changed.append(
            f"clustered_by {', '.join(_render_expressions(pair.after.clustered_by)) or 'none'}"
        )
    replaced = pair.after.kind.is_incremental_by_partition and before != after
    left = _list_partitions_beside_time(pair, set(after) - set(before))
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
            + (
                " A run replaces only the partitions that it writes rows into: a row that gets "
                f"another {quote_names(left)}, or is gone, stays in its old partition when its "
                "interval is computed again."
                if left
                else ""
            )
            + (f" {lost}" if lost else ""),
            "the new layout serves the readers' filters"
            + (", and no row that is written once changes its partition or goes" if left else ""),
            severity="high" if replaced or lost or left else None,
            model=pair.after,
            subject=tuple(item.split()[0] for item in changed),
            anchors=tuple(item.split()[0] for item in changed),
        )


def _list_partitions_beside_time(pair: ModelPair, added: set[str]) -> list[str]:
    """Lists added partition columns that split an interval by something other than its time.

    INSERT OVERWRITE does not touch a partition for which the query gives no row (Spark:
    `spark.sql.sources.partitionOverwriteMode`, which SQLMesh sets to dynamic).
    """
    model, query = pair.after, pair.query_after
    time = model.time_column
    if time is None or query is None or model.forward_only or model.dialect not in OVERWRITING:
        return []
    of_time = query.scopes.find_origins(time.column.name)
    return sorted(
        name
        for name in added - {time.column.name.lower()}
        if not (origins := query.scopes.find_origins(name)) or not origins <= of_time
    )


def _list_partitions(model: Model) -> list[str]:
    """Lists partition columns by name, because the state stores some functions in another form."""
    return sorted(list_column_names(list(model.partitioned_by)))


def _render_expressions(items: Any) -> list[str]:
    return [item.sql() for item in items or []]


@on_change(MERGE)
def find_merge_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changes of WHEN MATCHED, merge filters, and validity settings of dimensions."""
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
        if _render_setting(getattr(old, name, None)) != _render_setting(getattr(new, name, None))
    ]
    watched_old, watched_new = getattr(old, "columns", None), getattr(new, "columns", None)
    if watched_old is not None and _render_setting(watched_old) != _render_setting(watched_new):
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


def _render_setting(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(sorted(_render_setting(item) for item in value))
    return str(value.sql()).lower() if hasattr(value, "sql") else str(value)


# Properties that change more than speed: how long old versions are kept, who can read the table,
# which rows it refuses, and where its files are.


PROPERTIES = find_rule("table-property-changed")

PropertyEffect = Literal["history", "readers", "feed", "guard", "writers", "place", "purge", "text"]
_MEANINGS: Mapping[PropertyEffect, str] = {
    "history": "old versions of the table are deleted sooner, so nobody can read or restore them",
    "readers": "programs that read the table today may not be able to read it any more",
    "feed": "programs that follow the table's change feed get nothing any more",
    "guard": "the table accepts rows, or loses rows, although it refused that before",
    "writers": "two writers at one time may leave other rows",
    "place": "files of the table go to another place, which versions and environments may share",
    "purge": "it decides whether files are deleted with the table",
    "text": "stored text is read as other values",
}


@dataclass(frozen=True)
class _KnownProperty:
    """A property, or a family of properties.

    Attributes:
        harmless: the value, in lower case, that harms nobody; "more" means any larger amount.
        default: the value if the property is not set.
    """

    name: re.Pattern[str]
    effect: PropertyEffect
    harmless: str = ""
    default: str = ""


def _define_property(
    name: str, effect: PropertyEffect, harmless: str = "", default: str = ""
) -> _KnownProperty:
    return _KnownProperty(re.compile(name, re.IGNORECASE), effect, harmless, default)


# Delta (docs.delta.io, "Table properties reference"), Iceberg (iceberg.apache.org,
# "Configuration"), Hudi ("All configurations"), and those of Hive and Spark. All other properties
# only concern sizes, statistics, compression and the like.
_KNOWN = (
    _define_property(r"delta\.deletedFileRetentionDuration", "history", "more", "interval 1 week"),
    _define_property(r"delta\.logRetentionDuration", "history", "more", "interval 30 days"),
    _define_property(r"delta\.enableExpiredLogCleanup", "history", "false", "true"),
    _define_property(r"delta\.appendOnly", "guard", default="false"),
    _define_property(r"delta\.constraints\..+", "guard"),
    _define_property(r"delta\.isolationLevel", "writers", "serializable"),
    _define_property(r"delta\.enableChangeDataFeed", "feed", "true", "false"),
    _define_property(
        r"delta\.(min(Reader|Writer)Version|feature\..+|columnMapping\..+)", "readers"
    ),
    _define_property(
        r"delta\.(enableDeletionVectors|enableRowTracking)", "readers", "false", "false"
    ),
    _define_property(r"delta\.universalFormat\..+", "readers"),
    _define_property(r"history\.expire\.max-(snapshot|ref)-age-ms", "history", "more", "432000000"),
    _define_property(r"history\.expire\.min-snapshots-to-keep", "history", "more", "1"),
    _define_property(r"write\.metadata\.delete-after-commit\.enabled", "history", "false", "false"),
    _define_property(r"write\.metadata\.previous-versions-max", "history", "more", "100"),
    _define_property(r"format-version", "readers"),
    _define_property(r"write\.spark\.accept-any-schema", "guard", "false", "false"),
    _define_property(r"write\.(delete|update|merge)\.isolation-level", "writers", "serializable"),
    _define_property(
        r"write\.(data|metadata|object-storage|folder-storage)\.(path|location)", "place"
    ),
    _define_property(r"gc\.enabled", "purge", "false", "true"),
    _define_property(r"hoodie\.(cleaner|keep)\..*(retained|commits).*", "history", "more"),
    _define_property(r"hoodie\..*(recordkey|precombine|ordering)\..+", "writers"),
    _define_property(r"external\.table\.purge", "purge", "false", "false"),
    _define_property(r"serialization\.null\.format|(field|line|escape)\.delim", "text"),
    _define_property(r"skip\.(header|footer)\..+", "text"),
)
_IN_STATEMENT = re.compile(
    r"\b(UN)?SET\s+TBLPROPERTIES\s*(?:IF\s+EXISTS\s*)?\(([^)]*)\)", re.IGNORECASE
)
_PAIR = re.compile(
    r"""(?:'([^']+)'|"([^"]+)"|`?([\w.\-]+)`?)\s*(?:=\s*('[^']*'|"[^"]*"|[\w.\-]+))?"""
)
_AMOUNT = re.compile(r"(?:interval\s+)?(\d+)\s*([a-z]*?)s?", re.IGNORECASE)
_HOURS = {"": 1.0, "minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0}


@on_change(PROPERTIES)
def find_property_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds changed properties in the MODEL block, and in `TBLPROPERTIES` of its statements."""
    before, after = read_table_properties(pair.before), read_table_properties(pair.after)
    found: dict[PropertyEffect, list[str]] = {}
    for name in sorted(before.keys() | after.keys()):
        known = next((one for one in _KNOWN if one.name.fullmatch(name)), None)
        if known is None:
            continue
        old, new = before.get(name, known.default), after.get(name, known.default)
        if old.lower() != new.lower() and not _is_changed_value_harmless(known, old, new):
            was, now = before.get(name, "its default"), after.get(name, "its default")
            found.setdefault(known.effect, []).append(f"`{name}` from {was} to {now}")
    for effect, descriptions in found.items():
        yield RuleObservation(
            PROPERTIES,
            f"{', '.join(descriptions)}: {_MEANINGS[effect]}.",
            "the owner of the table confirms it",
            model=pair.after,
            subject=(effect,),
            anchors=(*(one.split("`")[1] for one in descriptions), "physical_properties"),
        )


def read_table_properties(model: Model) -> dict[str, str]:
    """Reads the table properties that a model sets, by name, without quotes."""
    found = {
        name: value.name if isinstance(value, exp.Literal) else value.sql().strip("'")
        for name, value in model.physical_properties.items()
    }
    for _, text in iterate_model_statements(model):
        for is_unset, part in _IN_STATEMENT.findall(text):
            for one, other, plain, value in _PAIR.findall(part):
                if is_unset:
                    found.pop(one or other or plain, None)
                else:
                    found[one or other or plain] = value.strip("'\"")
    return found


def _is_changed_value_harmless(known: _KnownProperty, old: str, new: str) -> bool:
    if known.harmless == "more":
        was, now = _read_amount_of_setting(old), _read_amount_of_setting(new)
        return was is not None and now is not None and now >= was
    return bool(known.harmless) and new.lower() == known.harmless


def _read_amount_of_setting(text: str) -> float | None:
    """Reads a number, in hours if it is a time; None if it is written in another way."""
    found = _AMOUNT.fullmatch(text.strip())
    hours = _HOURS.get(found[2].lower()) if found is not None else None
    return int(found[1]) * hours if found is not None and hours is not None else None
