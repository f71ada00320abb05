"""Checks of the state: prod, its gaps, its size, and the environments in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.state_sync.common import ExpiredBatchRange

from ci_bot.protocol.environment import read_pull_number
from ci_bot.protocol.plan import ProjectCheck
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost import describe_accuracy_of_costs, read_accuracy_of_costs
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning import is_reworded_code, list_gaps_between_intervals
from ci_bot.worker.state_store import HIDDEN_TABLES_HINT, CostLedger, Ledger

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.state_sync import StateSync

# The janitor runs with every `sqlmesh run`; an older leftover was never removed.
_STALE_MILLISECONDS = 7 * 86_400_000
_MANY_EXPIRED = 100
_SHOWN = 3


def check_prod_exists_in_state(state: StateSync) -> ProjectCheck:
    """Checks whether there is a prod, and when it was last written."""
    stored = state.get_environment(c.PROD)
    if stored is None:
        return ProjectCheck(
            name="prod",
            status="warn",
            message="There is no prod environment.",
            fix="Build it with `sqlmesh plan`; an apply needs it.",
        )
    models = sum(info.is_model for info in stored.snapshots)
    if not stored.finalized_ts:
        return ProjectCheck(
            name="prod",
            status="fail",
            message=f"prod has {models} models, and its last plan did not finish.",
            fix="Run `sqlmesh plan` again to finish it.",
        )
    written = report_times.format_iso_in_message(stored.finalized_ts)[
        : len("2024-01-31T12:00")
    ].replace("T", " ")
    return ProjectCheck(
        name="prod", status="ok", message=f"{models} models, last plan finished {written} UTC"
    )


def check_interval_gaps(state: StateSync, catalog: str | None, dialect: str | None) -> ProjectCheck:
    """Checks prod's tables for missing intervals before later ones."""
    stored = state.get_environment(c.PROD)
    names = MessageNames(catalog, dialect)
    found = []
    snapshots = state.get_snapshots(stored.snapshots) if stored is not None else {}
    for snapshot in sorted(snapshots.values(), key=lambda item: str(item.name)):
        if not snapshot.is_model or not snapshot.is_incremental:
            continue
        found += [
            f"{names.short_name(snapshot.name)} from "
            f"{report_times.format_iso_in_message(start)} to "
            f"{report_times.format_iso_in_message(end)}"
            for start, end in list_gaps_between_intervals(snapshot.intervals)
        ]
    if not found:
        return ProjectCheck(name="gaps", status="ok", message="prod's history has no gaps")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ProjectCheck(
        name="gaps",
        status="warn",
        message=f"prod lacks {'; '.join(found[:_SHOWN])}{more}",
        fix="Fill them with `sqlmesh plan`. An apply that would have to fill them is refused, "
        "because it never writes into prod's tables.",
    )


def check_state_size(state: StateSync) -> ProjectCheck:
    """Counts the snapshots, and those that the janitor should have removed."""
    total = sqlmesh_compat.count_sqlmesh_snapshots(state)
    now = report_times.read_milliseconds_now()
    batch = state.get_expired_snapshots(
        batch_range=ExpiredBatchRange.all_batch_range(), current_ts=now
    )
    expired = len(batch.expired_snapshot_ids) if batch is not None else 0
    late = [
        item.name
        for item in state.get_environments_summary()
        if item.expiration_ts is not None and item.expiration_ts < now - _STALE_MILLISECONDS
    ]
    message = f"{total} snapshots, {expired} of them expired"
    if late:
        message += f"; {len(late)} environments expired more than a week ago"
    if expired <= _MANY_EXPIRED and not late:
        return ProjectCheck(name="state size", status="ok", message=message)
    return ProjectCheck(
        name="state size",
        status="warn",
        message=message,
        fix="Nothing takes them away: run `sqlmesh janitor`, or `sqlmesh run` regularly.",
    )


def check_environments_in_state(state: StateSync, prefix: str) -> ProjectCheck:
    """Counts environments of pull requests, and those that an apply or a cleanup left
    unfinished.
    """
    stored = {
        item.name
        for item in state.get_environments_summary()
        if read_pull_number(item.name, prefix)
    }
    rows = Ledger(sqlmesh_compat.unwrap_sqlmesh_state_adapter(state)).list_rows()
    recorded = {row.environment for row in rows}
    unfinished = [row for row in rows if row.phase in ("failed", "cleaning", "leftover")]
    every = len(stored | recorded)
    message = f"{every} pull-request environment{'' if every == 1 else 's'}"
    if strangers := len(stored - recorded):
        message += f", {strangers} of them not made by this action"
    if not unfinished:
        return ProjectCheck(name="environments", status="ok", message=message)
    shown = ", ".join(f"{row.environment} ({row.phase})" for row in unfinished[:_SHOWN])
    more = f" and {len(unfinished) - _SHOWN} more" if len(unfinished) > _SHOWN else ""
    return ProjectCheck(
        name="environments",
        status="warn",
        message=f"{message}; unfinished: {shown}{more}",
        fix="Apply or clean up again; `ci-bot sweep` does it for closed pull requests.",
    )


def check_python_of_prod_models(
    state: StateSync, context: Context, version: str
) -> ProjectCheck | None:
    """Lists models of prod that another Python version wrote; None if there are none.

    Args:
        context: The context of the loaded project.
        version: The version of Python that this run has.
    """
    stored = state.get_environment(c.PROD)
    if stored is None:
        return None
    held = {item.name: item for item in state.get_snapshots(stored.snapshots).values()}
    names = MessageNames(context.default_catalog, context.default_dialect)
    found = [
        names.short_name(name)
        for name, snapshot in context.snapshots.items()
        if (old := held.get(name)) is not None and is_reworded_code(snapshot, old)
    ]
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return ProjectCheck(
        name="python",
        status="warn",
        message=f"prod was built by another version of Python than {version}: {min(found)}{more} "
        "is the same code, written differently",
        fix="Build prod with the Python that reviews and applies have, else such models are built "
        "again each time that the other one comes.",
    )


def check_ledger_is_readable(state: StateSync) -> ProjectCheck | None:
    """Reports tables of the bot that the state's account may not read; None if there are none."""
    hidden = Ledger(sqlmesh_compat.unwrap_sqlmesh_state_adapter(state)).describe_hidden_tables()
    if hidden is None:
        return None
    return ProjectCheck(name="ledger", status="warn", message=f"{hidden}.", fix=HIDDEN_TABLES_HINT)


def check_estimate_accuracy(state: StateSync) -> ProjectCheck:
    """Reports the accuracy of cost estimates; it needs at least five estimates."""
    found = read_accuracy_of_costs(CostLedger(sqlmesh_compat.unwrap_sqlmesh_state_adapter(state)))
    message = (
        describe_accuracy_of_costs(found)
        if found is not None
        else "fewer than five applies have an estimate of all of their models to compare with"
    )
    return ProjectCheck(name="estimates", status="ok", message=message)
