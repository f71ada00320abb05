"""Changes of the MODEL block and of the schedule.

The MODEL block: kind, time column, key, dialect, gateway, linter. The schedule: when a model runs,
from and until which day, and what it waits for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.models.declared_keys import list_grains
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import (
    is_signal_always_ready,
    list_column_names,
    map_stored_code_of_model,
    parse_python,
    read_audit_promises,
)
from ci_bot.worker.sqlmesh_compat import is_view_kind

if TYPE_CHECKING:
    from sqlmesh.core.model import Model
    from sqlmesh.utils.cron import CroniterCache
    from sqlmesh.utils.date import TimeLike

KIND = find_rule("kind-changed")
EMBEDDED = find_rule("model-embedded")
TIME_COLUMN = find_rule("time-column-changed")
UNIQUE_KEY = find_rule("unique-key-not-unique")
START = find_rule("start-moved-later")
DIALECT = find_rule("model-dialect-changed")
GATEWAY = find_rule("model-gateway-changed")
IGNORED = find_rule("lint-rules-ignored")
_KINDS_WITHOUT_HISTORY = frozenset({"FULL", "VIEW"})


def _name_kind_of_model(model: Model) -> str:
    return str(getattr(model.kind.name, "value", model.kind.name))


@on_change(KIND, EMBEDDED)
def find_kind_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds models of another kind: a view instead of a table, full builds instead of intervals."""
    old, new = _name_kind_of_model(pair.before), _name_kind_of_model(pair.after)
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
        severity="medium" if {old, new} <= _KINDS_WITHOUT_HISTORY else None,
        model=pair.after,
        anchors=("kind",),
    )


@on_change(TIME_COLUMN)
def find_time_column_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another time column: the column by which intervals are deleted and written."""
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
    elif _read_format_of_time_column(old) != _read_format_of_time_column(
        new
    ) and not _is_changed_time_column_temporal(pair.after, after):
        yield RuleObservation(
            TIME_COLUMN,
            f"The format of `{after}` changes from {old.format} to {new.format}.",
            "the stored values have the new format",
            model=pair.after,
            anchors=("time_column",),
        )


def _is_changed_time_column_temporal(model: Model, column: str) -> bool:
    """Whether the time column is a date or time stamp; only texts and numbers need a format."""
    kind = (model.columns_to_types or {}).get(column)
    return kind is not None and kind.this in exp.DataType.TEMPORAL_TYPES


def _read_format_of_time_column(time_column: Any) -> str:
    """Reads the time format; the state stores each percent sign twice, and this undoes it."""
    return str(time_column.format).replace("%%", "%")


@on_change(UNIQUE_KEY)
def find_key_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another key for the merge, if nothing proves that it is unique."""
    old = frozenset(list_column_names(pair.before.unique_key))
    new = frozenset(list_column_names(pair.after.unique_key))
    if not old or not new or old == new:
        return
    if old < new:
        # Also if the new key is proved: if a row changes in an added column, the merge does not
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
    if read_audit_promises(pair.after).makes_unique(new) or _does_changed_query_group_by(pair, new):
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


def _does_changed_query_group_by(pair: ModelPair, key: frozenset[str]) -> bool:
    """Whether the query groups by the key, or the old version declared it as a grain."""
    if any(grain and grain <= key for grain in list_grains(pair.before)):
        return True
    grouped = pair.both_forms[1].grouped_by if pair.both_forms is not None else frozenset()
    return bool(grouped) and grouped <= key


@on_change(START)
def find_start_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a later start: the history before it is not computed any more."""
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
    if new is not None and (old is None or _is_changed_start_later(old, new)):
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


def _is_changed_start_later(old: Any, new: Any) -> bool:
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
    """Finds the same text in another dialect, or on another gateway."""
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
    """Finds lint rules that no longer check this model."""
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


_OWNER_CONFIRMS_THE_WAIT = "the owner confirms what the model waits for"
CRON = find_rule("cron-changed")
END = find_rule("model-end-set")
SIGNAL = find_rule("signal-removed")
LOOKBACK = find_rule("lookback-removed")

# Half as many runs delay the readers; people notice a run that comes seven times less often.
RARER, MUCH_RARER = 2, 7
# From this factor on, a table that is computed whole costs many times more.
MUCH_MORE_OFTEN = 10


@on_change(CRON)
def find_cron_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds another schedule: the same data at another time, less often, or at a higher cost."""
    before, after = pair.before, pair.after
    unit = before.interval_unit != after.interval_unit and after.kind.is_incremental
    zone = before.cron_tz != after.cron_tz
    if before.cron == after.cron and not unit and not zone:
        return
    sentences: list[str] = []
    severity: Severity | None = None
    if before.cron != after.cron:
        sentences.append(f"The schedule changes from {before.cron} to {after.cron}")
    if zone:
        sentences.append(f"the time zone of the schedule is {after.cron_tz or 'UTC'} now")
    old, new = find_period(before.croniter), find_period(after.croniter)
    if old and new and new >= RARER * old:
        sentences.append("readers see new data later than before")
        severity = "high" if new >= MUCH_RARER * old else "medium"
    elif old and new and _is_computed_whole(after) and old >= MUCH_MORE_OFTEN * new:
        sentences.append(f"all of its history is computed {old / new:,.0f} times as often")
        severity = "high"
    if unit:
        sentences.append(
            f"an interval is one {after.interval_unit.value} now, and was one "
            f"{before.interval_unit.value}: what is stored does not fit the new intervals"
        )
        severity = "high"
    yield RuleObservation(
        CRON,
        f"{'; '.join(sentences)[:1].upper()}{'; '.join(sentences)[1:]}.",
        "readers expect the new schedule, and its cost is accepted",
        severity=severity,
        model=after,
        anchors=("cron", "interval_unit"),
    )


def _is_computed_whole(model: Model) -> bool:
    kind = model.kind
    stored_view = is_view_kind(kind) and kind.materialized
    return bool(kind.is_full or kind.is_scd_type_2 or stored_view)


def find_period(croniter: Callable[[datetime], CroniterCache]) -> float | None:
    """Returns the seconds between two runs of a schedule, counted from a fixed day.

    None if SQLMesh cannot read the schedule.
    """
    try:
        first = croniter(datetime(2024, 1, 1)).get_next()
        second = croniter(first).get_next()
        return float((second - first).total_seconds())
    except Exception:  # SQLMesh refuses a schedule that cannot be read
        return None


@on_change(LOOKBACK)
def find_lookback_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds fewer intervals that are computed again for late data."""
    old, new = int(pair.before.lookback or 0), int(pair.after.lookback or 0)
    if new < old and pair.after.kind.is_incremental:
        yield RuleObservation(
            LOOKBACK,
            f"lookback falls from {old} to {new}: data that arrive later than that are never read.",
            "the source delivers nothing late, or the lookback is back",
            model=pair.after,
            anchors=("lookback", "kind"),
        )
    what = _describe_less_restatement(pair.before, pair.after)
    if what is not None:
        yield RuleObservation(
            LOOKBACK,
            f"{what}: data that arrive late stay out for longer, or are never read.",
            "the source delivers nothing that late, or the restatement is back",
            model=pair.after,
            subject=("auto_restatement",),
            anchors=("auto_restatement_cron", "auto_restatement_intervals", "kind"),
        )


def _describe_less_restatement(before: Model, after: Model) -> str | None:
    """Describes how the automatic restatement shrinks; None if it does not.

    Without `auto_restatement_intervals` it covers the whole history.
    (`Snapshot.get_next_auto_restatement_interval`)
    """
    if before.auto_restatement_cron is None or not after.kind.is_incremental:
        return None
    if after.auto_restatement_cron is None:
        return f"The restatement by {before.auto_restatement_cron} is gone"
    old, new = before.auto_restatement_intervals, after.auto_restatement_intervals
    if new is not None and (old is None or new < old):
        return f"The automatic restatement covers {new} intervals, and covered {old or 'all'}"
    was, now = (find_period(side.auto_restatement_croniter) for side in (before, after))
    if was is not None and now is not None and now > was:
        return (
            f"The automatic restatement runs by {after.auto_restatement_cron}, and ran by "
            f"{before.auto_restatement_cron}"
        )
    return None


@on_change(END)
def find_end_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds a last day: the table does not change after it, and no check of readers shows that."""
    old, new = pair.before.end, pair.after.end
    if new is None or str(old) == str(new) or pair.after.kind.is_symbolic:
        return
    if old is not None and not _is_changed_end_earlier(new, old):
        return
    yield RuleObservation(
        END,
        f"The model ends at {new}"
        + (f", no longer at {old}" if old is not None else "")
        + ": nothing after it is computed any more, while its readers go on.",
        "the owner confirms that the model ends, and its readers know",
        model=pair.after,
        anchors=("end",),
    )


def _is_changed_end_earlier(one: TimeLike, other: TimeLike) -> bool:
    from sqlmesh.utils.date import to_datetime

    base = datetime(2000, 1, 1)
    try:
        return bool(to_datetime(one, relative_base=base) < to_datetime(other, relative_base=base))
    except (ValueError, TypeError):
        return True  # if the two cannot be compared, a person should check


@on_change(SIGNAL)
def find_signal_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Finds signals that go or change: a signal delays a run until its data are there."""
    old, new = _list_signal_arguments(pair.before), _list_signal_arguments(pair.after)
    gone = sorted(set(old) - set(new))
    other = sorted(name for name in set(old) & set(new) if old[name] != new[name])
    if gone:
        yield RuleObservation(
            SIGNAL,
            f"The model no longer waits for {quote_names(gone)}: an interval whose data are not "
            "there yet is computed without them, and counts as done.",
            "the data are there when the model runs, or the signal is back",
            model=pair.after,
            subject=tuple(gone),
            anchors=("signals", "name"),
        )
    if other:
        yield RuleObservation(
            SIGNAL,
            f"The model waits for something else: the arguments of {quote_names(other)} change.",
            _OWNER_CONFIRMS_THE_WAIT,
            model=pair.after,
            subject=tuple(other),
            anchors=("signals",),
        )
    rewritten = {
        name: map_stored_code_of_model(pair.after).get(name)
        for name in sorted(set(old) & set(new))
        if map_stored_code_of_model(pair.before).get(name)
        != map_stored_code_of_model(pair.after).get(name)
    }
    for name, body in rewritten.items():
        lets_all = is_signal_always_ready(body)
        yield RuleObservation(
            SIGNAL,
            f"The code of the signal `{name}` changes"
            + (
                ": it lets every interval through now, so one whose data are not there yet is "
                "computed without them, and counts as done."
                if lets_all
                else ", and with it what the model waits for."
            ),
            _OWNER_CONFIRMS_THE_WAIT,
            severity=None if lets_all else "medium",
            model=pair.after,
            subject=(f"code of {name}",),
            anchors=("signals",),
        )


def _list_signal_arguments(model: Model) -> dict[str, dict[str, str]]:
    """Maps each signal to its arguments and the defaults of its code.

    The texts are the same from the state and from a file.
    """
    code = map_stored_code_of_model(model)
    return {
        str(name): _list_defaults_in_code(code.get(str(name)), str(name))
        | {
            str(key): value.sql() if hasattr(value, "sql") else str(value)
            for key, value in arguments.items()
        }
        for name, arguments in model.signals or []
    }


def _list_defaults_in_code(code: str | None, name: str) -> dict[str, str]:
    """Maps a function's arguments to their defaults; plain values as SQLGlot writes them."""
    tree = parse_python(code) if code is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            found, given = node.args, node.args.defaults
            named = [*found.posonlyargs, *found.args]
            pairs = [*zip(named[len(named) - len(given) :], given, strict=True)]
            pairs += [
                (key, value)
                for key, value in zip(found.kwonlyargs, found.kw_defaults, strict=True)
                if value is not None
            ]
            return {
                key.arg: exp.convert(value.value).sql()
                if isinstance(value, ast.Constant)
                else ast.unparse(value)
                for key, value in pairs
            }
    return {}
