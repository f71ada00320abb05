"""What an apply shows of what it built: views that resolve, row counts, the diff against prod.

Whatever fails here is tried once more. Environments of several pull requests can share the physical
view of a preview, and while one of them replaces it (Spark drops it and makes it again) it is gone
for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sqlmesh.core import constants as c
from sqlmesh.core.snapshot import Snapshot

from ci_bot.protocol.apply_report import TableDiff, View
from ci_bot.protocol.messages import ApplyRequest
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.apply.recorder import ConsoleRecorder
from ci_bot.worker.data_diff import (
    FAILED,
    FEW_ROWS,
    DiffBudget,
    DiffCandidate,
    DiffControls,
    DiffPort,
    DiffSpec,
    SparkPort,
    SqlError,
    TimeWindow,
    compare_models,
    side_by_side,
    spark_failures,
)
from ci_bot.worker.messages import ModelNames, error_headline, error_sentence
from ci_bot.worker.planning import BuiltPlan, make_plan
from ci_bot.worker.runtime import Relation, SparkCatalog, spark_catalog
from ci_bot.worker.sql import key_columns

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

Result = TypeVar("Result")

# A diff reads both tables; beyond this it is a job of its own, and the largest are left out.
MAX_ROWS = 2_000_000_000
# Of both sides. Beyond this, counting distinct values takes longer than people wait for it.
MAX_ROWS_DISTINCT = 1_000_000

NO_TABLE_DIFF = "The input `table-diff` is false."
# Each is a question to the driver and its metastore, and an environment can have thousands.
RESOLVED_AT_ONCE = 4
# Each is a plan in the driver's memory: 100 KB and more for a view upon views. Others are looked at
# once for each question.
MOST_KEPT = 1_000
# Replacing a view takes Hive a fraction of this.
PAUSE_SECONDS = 2.0

_LONGEST = 4_000


@dataclass
class ApplyEvidence:
    """Row counts by model, one data diff per changed model, and why there is no more of it."""

    rows: dict[str, int] = field(default_factory=dict)
    diffs: list[TableDiff] = field(default_factory=list)
    missing: str | None = None


@dataclass(frozen=True)
class EvidencePorts:
    """What looking needs: how to tell, when to stop, a clock, and how to wait, in seconds."""

    progress: Callable[[str, str, int | None, int | None], None]
    stop: Callable[[], bool]
    now: Callable[[], float]
    pause: Callable[[float], None]


def resolve_views(
    context: Context,
    planned: BuiltPlan,
    catalog: SparkCatalog,
    port: SparkPort,
    ports: EvidencePorts,
) -> list[View]:
    """Asks Spark to resolve every view of the environment.

    What it finds of those that changed is kept in `port`, because all evidence is about them.

    Raises:
        Exception: Spark does not answer.
    """
    ports.progress("verify", "asking Spark to resolve every view", None, None)
    views = spark_catalog.views_of(context, planned.plan.environment)
    kept = frozenset(_list_kept_views(_list_changed_snapshots(planned), views))

    def analyse(view: Relation) -> None:
        if view in kept:
            port.analyse_table(view.sql_text)
        else:
            catalog.analyse_relation(view)

    relations = list(views.values())
    answers = _look_twice(
        lambda: catalog.resolve_relations(relations, at_once=RESOLVED_AT_ONCE, analyse=analyse),
        ports,
    )
    broken = [relation for relation, error in answers.items() if error is not None]
    if broken and not ports.stop():
        ports.pause(PAUSE_SECONDS)
        answers |= _look_twice(lambda: catalog.resolve_relations(broken), ports)
    return [
        View(
            view=relation.shown_name,
            resolves=error is None,
            error=None if error is None else shorten_redacted(error_headline(error), _LONGEST),
        )
        for relation, error in answers.items()
    ]


def try_collect_evidence(
    request: ApplyRequest,
    context: Context,
    planned: BuiltPlan,
    names: ModelNames,
    catalog: SparkCatalog,
    port: SparkPort,
    ports: EvidencePorts,
) -> ApplyEvidence:
    """`collect`, which does not fail: what could not be had says why."""
    try:
        return _look_twice(
            lambda: collect_evidence(request, context, planned, names, catalog, port, ports), ports
        )
    except Exception as error:
        return ApplyEvidence(missing=f"it could not be collected: {error_sentence(error)}"[:4_000])


def _look_twice(look: Callable[[], Result], ports: EvidencePorts) -> Result:
    try:
        return look()
    except Exception:
        if ports.stop():
            raise
        ports.pause(PAUSE_SECONDS)
        return look()


def collect_evidence(
    request: ApplyRequest,
    context: Context,
    planned: BuiltPlan,
    names: ModelNames,
    catalog: SparkCatalog,
    port: SparkPort,
    ports: EvidencePorts,
) -> ApplyEvidence:
    """Counts the rows of every promoted model that changed, and compares it with prod.

    Aggregates only: no row leaves the warehouse, and nothing is written into it.
    """
    changed = _list_changed_snapshots(planned)
    here = spark_catalog.views_of(context, planned.plan.environment)
    relations = {view: name for name, view in here.items() if name in changed}
    models = f"{len(relations)} model{'' if len(relations) == 1 else 's'}"
    ports.progress("evidence", f"counting rows ({models})", None, None)
    often_asked = [view.sql_text for view in _list_kept_views(changed, here)]
    with port.keep_tables(often_asked, at_once=RESOLVED_AT_ONCE) as kept:
        with spark_failures():
            counted = catalog.count_rows(list(relations), kept)
        counts = {relations[view]: n for view, n in counted.items()}
        rows = {names.short_name(name): count for name, count in counts.items()}
        if not request.table_diff:
            skipped = [
                TableDiff(model=name, compared=False, skipped_because=NO_TABLE_DIFF)
                for name in sorted(rows)
            ]
            return ApplyEvidence(rows, skipped)
        prod = context.state_reader.get_environment(c.PROD)
        there = spark_catalog.views_of(context, prod) if prod is not None else {}
        candidates = _list_candidates(context, planned, changed, here, there, names, counts)
        diffs = _compare_candidates(context, port, candidates, ports)
    direct = {names.short_name(name): _is_direct(planned, name) for name in changed}
    diffs = [diff.model_copy(update={"direct": direct.get(diff.model)}) for diff in diffs]
    return ApplyEvidence(rows, diffs, _nothing_compared(diffs))


def _list_changed_snapshots(planned: BuiltPlan) -> dict[str, Snapshot]:
    return {snapshot.name: snapshot for snapshot in planned.changed_snapshots if snapshot.is_model}


def _list_kept_views(changed: Container[str], views: Mapping[str, Relation]) -> list[Relation]:
    """The views that all evidence is about, as many of them as a session keeps."""
    return [view for name, view in views.items() if name in changed][:MOST_KEPT]


def _compare_candidates(
    context: Context, port: SparkPort, candidates: Sequence[DiffCandidate], ports: EvidencePorts
) -> list[TableDiff]:
    """A diff for each candidate, told of as it comes."""
    total = len(candidates)
    finished = 0

    def done(diff: TableDiff) -> None:
        nonlocal finished
        finished += 1
        ports.progress("evidence", f"compared {diff.model} with prod", finished, total)

    return compare_models(
        port,
        candidates,
        budget=DiffBudget(rows=MAX_ROWS),
        controls=DiffControls(
            workers=side_by_side(sqlmesh_compat.spark_session_of(context.engine_adapter)),
            cancelled=ports.stop,
            stop=port.cancel_queries,
            clock=ports.now,
            again=lambda: ports.pause(PAUSE_SECONDS),
        ),
        done=done,
    )


def _is_direct(planned: BuiltPlan, name: str) -> bool:
    """Whether a changed model is new or was changed itself."""
    diff = planned.plan.context_diff
    return name not in diff.modified_snapshots or diff.directly_modified(name)


def _nothing_compared(diffs: Sequence[TableDiff]) -> str | None:
    """Why no model could be compared, where Spark was the reason: it may have died meanwhile."""
    failed = [why for diff in diffs if (why := diff.skipped_because or "").startswith(FAILED)]
    if not failed or any(diff.compared for diff in diffs):
        return None
    return f"no model could be compared with prod. {failed[0]}"[:4_000]


def _list_candidates(
    context: Context,
    planned: BuiltPlan,
    changed: Mapping[str, Snapshot],
    here: Mapping[str, Relation],
    there: Mapping[str, Relation],
    names: ModelNames,
    counts: Mapping[str, int],
) -> list[DiffCandidate]:
    """What can be compared: models with a view on both sides, whose data can differ."""
    diff = planned.plan.context_diff
    stored = {
        s.name: s for s in context.state_reader.get_snapshots(list(changed.values())).values()
    }
    found = []
    empty = _without_data(planned, stored)
    for name in sorted(changed):
        view, other = here.get(name), there.get(name)
        if view is None:
            continue
        old = diff.modified_snapshots[name][1] if name in diff.modified_snapshots else None
        unavailable, unaffected = None, True
        if other is None or old is None:
            unavailable = "The model is new: prod has nothing to compare it with."
        elif planned.shares_prod_table(changed[name]):
            unavailable = "Only metadata changed: both sides read the same table."
        elif planned.plan.skip_backfill and not counts.get(name):
            unavailable, unaffected = "It is empty, because the plan skips the backfill.", False
        elif name in empty:
            unavailable, unaffected = _why_empty(name, empty[name], names), False
        found.append(
            DiffCandidate(
                DiffSpec(
                    model=names.short_name(name),
                    prod=other.sql_text if other else view.sql_text,
                    pr=view.sql_text,
                    keys=key_columns(changed[name].model),
                    window=_find_time_window(planned, stored.get(name, changed[name]), old),
                    distinct=2 * counts.get(name, 0) <= MAX_ROWS_DISTINCT,
                    few=counts.get(name, FEW_ROWS + 1) <= FEW_ROWS,
                ),
                rows=2 * counts.get(name, 0),
                unavailable=unavailable,
                unaffected=unaffected and unavailable is not None,
            )
        )
    return found


def _without_data(planned: BuiltPlan, stored: Mapping[str, Snapshot]) -> dict[str, str]:
    """Changed models that say nothing of the change, each with the one whose table has no data: the
    plan's window holds no whole interval of it. What reads such a table is computed from nothing.

    Args:
        stored: The changed snapshots as they are now, with the intervals that were built.
    """
    found = {
        name: name
        for name, snapshot in sorted(stored.items())
        if snapshot.is_model
        and not snapshot.is_view
        and not snapshot.is_symbolic
        and not make_plan.held_intervals(snapshot, planned.deployable)
    }
    readers: dict[str, list[str]] = {}
    for name, snapshot in sorted(stored.items()):
        for parent in snapshot.parents:
            readers.setdefault(parent.name, []).append(name)
    waiting = list(found)
    while waiting:
        parent_name = waiting.pop()
        for reader in readers.get(parent_name, ()):
            if reader not in found:
                found[reader] = found[parent_name]
                waiting.append(reader)
    return found


def _why_empty(name: str, empty: str, names: ModelNames) -> str:
    if name == empty:
        return (
            "It has no data here: the plan's window holds no whole interval of it. "
            "`min-intervals: 1` or an earlier `start` gives it one."
        )
    return f"It reads {names.short_name(empty)}, which has no data in the plan's window."


def _find_time_window(planned: BuiltPlan, new: Snapshot, old: Snapshot | None) -> TimeWindow | None:
    """The intervals of both sides, for models that are incremental by time."""
    if old is None or not new.is_model or new.model.time_column is None:
        return None
    held = new.intervals if planned.deployable.is_deployable(new) else new.dev_intervals
    column = new.model.time_column
    return TimeWindow(
        column=column.column.name,
        prod=old.intervals,
        pr=held,
        format=column.format or c.DEFAULT_TIME_COLUMN_FORMAT,
    )


# Whether prod has what an audit has found: the same query, asked of prod's views.
#
# It tells a mistake of the change from one that was there before. Nothing but a count leaves the
# warehouse.


NEW_MODEL = "The model is new: prod does not have it."

_LINE = 1_000


def ask_prod(
    recorder: ConsoleRecorder, port: DiffPort, adapter: EngineAdapter, there: Mapping[str, Relation]
) -> None:
    """Asks prod each failed audit of an apply, and enters what it answers.

    Args:
        there: Prod's views, by the name of their model.
    """
    tables = {name: view.sql_text for name, view in there.items()}
    for model, key, question in recorder.failed_audits():
        rows, why = None, None
        if question.snapshot.name not in tables:
            why = NEW_MODEL
        else:
            try:
                rows = int(port.query_rows(question.render_sql(adapter, tables))[0][0])
            except SqlError as error:
                # Most often a column that prod's view does not have.
                why = str(error)[:_LINE]
            except Exception as error:
                why = f"The audit could not be rendered for prod: {error_sentence(error)}"[:_LINE]
        recorder.prod_answered(model, key, rows, why)
