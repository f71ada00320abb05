"""The schedule of a model: when it runs, until which day, and what it waits for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.inputs import RuleInputs
from ci_bot.worker.rules.model_pair import ModelPair
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.rules.registry import on_change
from ci_bot.worker.sql import is_signal_always_ready, parse_python
from ci_bot.worker.sqlmesh_compat import is_view_kind

if TYPE_CHECKING:
    from sqlmesh.core.model import Model
    from sqlmesh.utils.cron import CroniterCache
    from sqlmesh.utils.date import TimeLike

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
    """Another schedule: the same data at another time, less often, or at a higher cost."""
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
    """Finds the seconds between two runs of a schedule, counted from a fixed day."""
    try:
        first = croniter(datetime(2024, 1, 1)).get_next()
        second = croniter(first).get_next()
        return float((second - first).total_seconds())
    except Exception:  # SQLMesh refuses a schedule that cannot be read
        return None


@on_change(LOOKBACK)
def find_lookback_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Fewer intervals that are computed again for late data."""
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
    """A last day: the table does not change after it, and no check of its readers shows that."""
    old, new = pair.before.end, pair.after.end
    if new is None or str(old) == str(new) or pair.after.kind.is_symbolic:
        return
    if old is not None and not _is_earlier(new, old):
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


def _is_earlier(one: TimeLike, other: TimeLike) -> bool:
    from sqlmesh.utils.date import to_datetime

    base = datetime(2000, 1, 1)
    try:
        return bool(to_datetime(one, relative_base=base) < to_datetime(other, relative_base=base))
    except (ValueError, TypeError):
        return True  # if the two cannot be compared, a person should check


@on_change(SIGNAL)
def find_signal_changes(pair: ModelPair, inputs: RuleInputs) -> Iterator[RuleObservation]:
    """Signals that go or change: a signal delays a run until its data are there."""
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
        name: _map_code_bodies(pair.after).get(name)
        for name in sorted(set(old) & set(new))
        if _map_code_bodies(pair.before).get(name) != _map_code_bodies(pair.after).get(name)
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


def _map_code_bodies(model: Model) -> dict[str, str]:
    """Maps function names to the code that SQLMesh stored with a model."""
    return {name: str(item.payload) for name, item in model.python_env.items()}


def _list_signal_arguments(model: Model) -> dict[str, dict[str, str]]:
    """Lists the arguments of each signal with the defaults of its code, as text that is the same
    from state and file.
    """
    code = _map_code_bodies(model)
    return {
        str(name): _list_defaults(code.get(str(name)), str(name))
        | {
            str(key): value.sql() if hasattr(value, "sql") else str(value)
            for key, value in arguments.items()
        }
        for name, arguments in model.signals or []
    }


def _list_defaults(code: str | None, name: str) -> dict[str, str]:
    """Lists the defaults of a function's arguments; plain values as SQLGlot writes them."""
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
