"""Changes of the MODEL block: kind, time column, key, start, dialect, gateway, linter."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.keys import list_grains
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import list_column_names, read_audit_promises

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

KIND = find_rule("kind-changed")
EMBEDDED = find_rule("model-embedded")
TIME_COLUMN = find_rule("time-column-changed")
UNIQUE_KEY = find_rule("unique-key-not-unique")
START = find_rule("start-moved-later")
DIALECT = find_rule("model-dialect-changed")
GATEWAY = find_rule("model-gateway-changed")
IGNORED = find_rule("lint-rules-ignored")

_WEIGHTY = frozenset({"FULL", "VIEW"})


def _name_kind(model: Model) -> str:
    return str(getattr(model.kind.name, "value", model.kind.name))


@on_change(KIND, EMBEDDED)
def find_kind_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Models of another kind: a view instead of a table, full builds instead of intervals."""
    old, new = _name_kind(pair.before), _name_kind(pair.after)
    if old == new:
        return
    if new == "EMBEDDED":
        yield RuleObservation(
            EMBEDDED,
            f"{old} becomes EMBEDDED: the model exists inside the queries of its readers only, and "
            "readers outside the project find nothing any more.",
            "nobody outside the project reads it",
            model=pair.after,
            anchors=("kind",),
        )
        return
    yield RuleObservation(
        KIND,
        f"{old} becomes {new}: "
        + (
            "nothing is stored any more, and every reader computes it."
            if new == "VIEW"
            else "the table is built again, and each run writes it in another way."
        ),
        "the owner confirms the new kind and its cost",
        severity="medium" if {old, new} <= _WEIGHTY else None,
        model=pair.after,
        anchors=("kind",),
    )


@on_change(TIME_COLUMN)
def find_time_column_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Another time column: the column by which intervals are deleted and written."""
    old, new = pair.before.time_column, pair.after.time_column
    if old is None or new is None:
        return
    before, after = old.column.name, new.column.name
    if before.lower() != after.lower():
        yield RuleObservation(
            TIME_COLUMN,
            f"Intervals are written by `{after}`, no longer by `{before}`: rows that are stored "
            "under the old column are neither found nor replaced, and readers filter on the old.",
            "the table is built again, and readers filter on the new column",
            model=pair.after,
            anchors=("time_column",),
        )
    elif _read_time_format(old) != _read_time_format(new) and not _is_temporal(pair.after, after):
        yield RuleObservation(
            TIME_COLUMN,
            f"The format of `{after}` changes from {old.format} to {new.format}.",
            "the stored values have the new format",
            model=pair.after,
            anchors=("time_column",),
        )


def _is_temporal(model: Model, column: str) -> bool:
    """Whether the time column is a date or time stamp; only texts and numbers need a format."""
    kind = (model.columns_to_types or {}).get(column)
    return kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES


def _read_time_format(time_column: Any) -> str:
    """Reads the time format: the state stores each percent sign twice."""
    return str(time_column.format).replace("%%", "%")


@on_change(UNIQUE_KEY)
def find_key_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Another key for the merge, if nothing proves that it is unique."""
    old = frozenset(list_column_names(pair.before.unique_key))
    new = frozenset(list_column_names(pair.after.unique_key))
    if not old or not new or old == new:
        return
    if old < new:
        # Even if the new key is proved: if a row changes in an added column, the merge does not
        # replace the old row, but stores a second one.
        yield RuleObservation(
            UNIQUE_KEY,
            f"The key grows from {quote_names(old)} to {quote_names(new)}: one {quote_names(old)} "
            "may now have several rows.",
            "readers expect several rows for each of the old keys",
            model=pair.after,
            anchors=("unique_key",),
        )
        return
    if read_audit_promises(pair.after).makes_unique(new) or _groups_by(pair, new):
        yield RuleObservation(
            UNIQUE_KEY,
            f"The key changes from {quote_names(old)} to {quote_names(new)}; rows stored under "
            "the old key stay beside the new ones.",
            "the table is built again",
            severity="medium",
            model=pair.after,
            anchors=("unique_key",),
        )
        return
    proof = "fewer columns" if new < old else "other columns"
    yield RuleObservation(
        UNIQUE_KEY,
        f"The key changes from {quote_names(old)} to {quote_names(new)} ({proof}), and nothing "
        "shows that it is unique: rows that share it overwrite or close each other.",
        "an audit proves the new key, or the old one is back",
        model=pair.after,
        anchors=("unique_key",),
    )


def _groups_by(pair: ModelPair, key: frozenset[str]) -> bool:
    """Whether the query groups by the key, or the old version declared it as a grain."""
    if any(grain and grain <= key for grain in list_grains(pair.before)):
        return True
    grouped = pair.both_forms[1].grouped_by if pair.both_forms is not None else frozenset()
    return bool(grouped) and grouped <= key


@on_change(START)
def find_start_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """A later start: the history before it is not computed any more."""
    old, new = pair.before.start, pair.after.start
    if str(old) == str(new) or pair.after.kind.is_view or pair.after.kind.is_symbolic:
        return
    rebuilt = pair.before.data_hash != pair.after.data_hash
    if old is not None and new is None:
        yield RuleObservation(
            START,
            f"`start` was removed (it was {old}). New history begins at the parents' start, or "
            "yesterday.",
            "the model has its start back",
            model=pair.after,
            anchors=("kind", "name"),
        )
        return
    if new is not None and (old is None or _is_later(old, new)):
        if old is None and not pair.before.kind.is_incremental:
            return
        yield RuleObservation(
            START,
            f"The history starts at {new}"
            + (f", no longer at {old}" if old is not None else ", and had no bound before")
            + (
                ": the table is built again, and what is older will be missing."
                if rebuilt
                else ": what is older is never computed or restated again."
            ),
            "the owner confirms that the older history may go",
            model=pair.after,
            anchors=("start",),
        )


def _is_later(old: Any, new: Any) -> bool:
    from sqlmesh.utils.date import to_datetime

    base = datetime(2000, 1, 1)
    try:
        return bool(to_datetime(new, relative_base=base) > to_datetime(old, relative_base=base))
    except (ValueError, TypeError):
        return False


@on_change(DIALECT, GATEWAY)
def find_dialect_or_gateway_changes(
    pair: ModelPair, inputs: RuleInputs
) -> Iterator[RuleObservation]:
    """The same text in another dialect, or on another gateway."""
    # A changed default is one finding on the project, not one for each model.
    path, files = inputs.find_path(pair.after), inputs.changed_files
    default_moved = pair.after.dialect == inputs.default_dialect and (
        files is None or path not in files
    )
    if pair.before.dialect != pair.after.dialect and not default_moved:
        yield RuleObservation(
            DIALECT,
            f"Read as {pair.after.dialect or 'the default dialect'}, no longer as "
            f"{pair.before.dialect}: division, functions and quotes may mean other things.",
            "the rendered query is the same, or means what it should",
            model=pair.after,
            anchors=("dialect",),
        )
    if pair.before.gateway != pair.after.gateway:
        yield RuleObservation(
            GATEWAY,
            f"Runs on gateway {pair.after.gateway or '(default)'}, no longer on "
            f"{pair.before.gateway or '(default)'}: its table is built in another place.",
            "the owner confirms the new place",
            model=pair.after,
            anchors=("gateway",),
        )


@on_change(IGNORED)
def find_ignored_lint_rules(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Lint rules that no longer check this model."""
    # The state does not store this setting, so only the file shows the change.
    path = inputs.find_path(pair.after)
    if path is None or inputs.changed_files is None or path not in inputs.changed_files:
        return
    old = (inputs.read_text_before(path) or "").lower()
    if pair.after.ignored_rules and "ignored_rules" not in old:
        yield RuleObservation(
            IGNORED,
            f"The linter skips {quote_names(pair.after.ignored_rules)} on this model.",
            "the rule is satisfied, or a reviewer agrees",
            model=pair.after,
            anchors=("ignored_rules",),
        )
