"""The evidence of an apply: views that resolve, row counts, the diff against prod.

Several pull requests can share the physical view of a preview. While one of them replaces it (Spark
drops it and makes it again), it is missing for the others.
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
from ci_bot.worker.apply.recorder import ApplyRecorder
from ci_bot.worker.data_diff import (
    FAILED,
    FEW_ROWS,
    DiffBudget,
    DiffCandidate,
    DiffControls,
    DiffPort,
    DiffQueryError,
    DiffSpec,
    SparkDiffPort,
    TimeWindow,
    count_parallel_diffs,
    diff_models,
    raise_spark_failures_as_diff_errors,
)
from ci_bot.worker.messages import (
    MessageNames,
    extract_headline_of_error,
    extract_sentence_of_error,
)
from ci_bot.worker.planning import BuiltPlan, make_plan
from ci_bot.worker.runtime import SparkCatalog, SparkRelation, spark_catalog
from ci_bot.worker.sql import list_key_columns

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

Result = TypeVar("Result")

# A diff reads both tables. Larger tables are left out: their diff is a separate job.
MAX_ROWS = 2_000_000_000
# Rows of both sides together. Above this, counting distinct values takes longer than people wait.
MAX_ROWS_DISTINCT = 1_000_000

NO_TABLE_DIFF = "The input `table-diff` is false."
# Each view is a request to the driver and its metastore, and an environment can have thousands.
RESOLVED_AT_ONCE = 4
# Each kept view is a plan in the driver's memory: 100 KB or more for a view on views. Spark
# resolves the other views again for each query.
MOST_KEPT = 1_000
# Hive replaces a view in a fraction of this time.
PAUSE_SECONDS = 2.0

_LONGEST = 4_000


@dataclass
class ApplyEvidence:
    """Row counts by model, one data diff per changed model, and the reason if some are missing."""

    rows: dict[str, int] = field(default_factory=dict)
    diffs: list[TableDiff] = field(default_factory=list)
    missing: str | None = None


@dataclass(frozen=True)
class ApplyEvidencePorts:
    """Progress, request to stop, clock and pause (in seconds) for collecting evidence."""

    progress: Callable[[str, str, int | None, int | None], None]
    stop: Callable[[], bool]
    now: Callable[[], float]
    pause: Callable[[float], None]


def resolve_applied_views(
    context: Context,
    planned: BuiltPlan,
    catalog: SparkCatalog,
    port: SparkDiffPort,
    ports: ApplyEvidencePorts,
) -> list[View]:
    """Asks Spark to resolve every view of the environment.

    Keeps the changed models' views in `port`, because all evidence is about them.

    Raises:
        Exception: Spark does not answer.
    """
    ports.progress("verify", "asking Spark to resolve every view", None, None)
    views = spark_catalog.list_spark_views_of_environment(context, planned.plan.environment)
    kept = frozenset(
        _list_views_kept_for_apply_evidence(_list_changed_snapshots_of_apply(planned), views)
    )

    def analyse_one(view: SparkRelation) -> None:
        if view in kept:
            port.analyse_table(view.sql_text)
        else:
            catalog.analyse_relation(view)

    relations = list(views.values())
    answers = _retry_evidence_once(
        lambda: catalog.resolve_relations(relations, at_once=RESOLVED_AT_ONCE, analyse=analyse_one),
        ports,
    )
    broken = [relation for relation, error in answers.items() if error is not None]
    if broken and not ports.stop():
        ports.pause(PAUSE_SECONDS)
        answers |= _retry_evidence_once(lambda: catalog.resolve_relations(broken), ports)
    return [
        View(
            view=relation.shown_name,
            resolves=error is None,
            error=None
            if error is None
            else shorten_redacted(extract_headline_of_error(error), _LONGEST),
        )
        for relation, error in answers.items()
    ]


def try_collect_apply_evidence(
    request: ApplyRequest,
    context: Context,
    planned: BuiltPlan,
    names: MessageNames,
    catalog: SparkCatalog,
    port: SparkDiffPort,
    ports: ApplyEvidencePorts,
) -> ApplyEvidence:
    """Runs `collect_apply_evidence`; on a failure the result says why there is none."""
    try:
        return _retry_evidence_once(
            lambda: collect_apply_evidence(request, context, planned, names, catalog, port, ports),
            ports,
        )
    except Exception as error:
        return ApplyEvidence(
            missing=f"it could not be collected: {extract_sentence_of_error(error)}"[:4_000]
        )


def _retry_evidence_once(look: Callable[[], Result], ports: ApplyEvidencePorts) -> Result:
    try:
        return look()
    except Exception:
        if ports.stop():
            raise
        ports.pause(PAUSE_SECONDS)
        return look()


def collect_apply_evidence(
    request: ApplyRequest,
    context: Context,
    planned: BuiltPlan,
    names: MessageNames,
    catalog: SparkCatalog,
    port: SparkDiffPort,
    ports: ApplyEvidencePorts,
) -> ApplyEvidence:
    """Counts the rows of each promoted model that changed, and compares them with prod.

    Aggregates only: no row leaves the warehouse, and nothing is written into it.
    """
    changed = _list_changed_snapshots_of_apply(planned)
    here = spark_catalog.list_spark_views_of_environment(context, planned.plan.environment)
    relations = {view: name for name, view in here.items() if name in changed}
    models = f"{len(relations)} model{'' if len(relations) == 1 else 's'}"
    ports.progress("evidence", f"counting rows ({models})", None, None)
    often_asked = [view.sql_text for view in _list_views_kept_for_apply_evidence(changed, here)]
    with port.keep_tables(often_asked, at_once=RESOLVED_AT_ONCE) as kept:
        with raise_spark_failures_as_diff_errors():
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
        there = (
            spark_catalog.list_spark_views_of_environment(context, prod) if prod is not None else {}
        )
        candidates = _list_candidates_of_apply_evidence(
            context, planned, changed, here, there, names, counts
        )
        diffs = _compare_candidates_of_apply(context, port, candidates, ports)
    direct = {
        names.short_name(name): _is_changed_directly_by_apply(planned, name) for name in changed
    }
    diffs = [diff.model_copy(update={"direct": direct.get(diff.model)}) for diff in diffs]
    return ApplyEvidence(rows, diffs, _explain_missing_apply_comparison(diffs))


def _list_changed_snapshots_of_apply(planned: BuiltPlan) -> dict[str, Snapshot]:
    return {snapshot.name: snapshot for snapshot in planned.changed_snapshots if snapshot.is_model}


def _list_views_kept_for_apply_evidence(
    changed: Container[str], views: Mapping[str, SparkRelation]
) -> list[SparkRelation]:
    """Lists the views that all evidence is about, at most as many as a session keeps."""
    return [view for name, view in views.items() if name in changed][:MOST_KEPT]


def _compare_candidates_of_apply(
    context: Context,
    port: SparkDiffPort,
    candidates: Sequence[DiffCandidate],
    ports: ApplyEvidencePorts,
) -> list[TableDiff]:
    """Makes a diff for each candidate, with a progress line for each."""
    total = len(candidates)
    finished = 0

    def report_compared(diff: TableDiff) -> None:
        nonlocal finished
        finished += 1
        ports.progress("evidence", f"compared {diff.model} with prod", finished, total)

    return diff_models(
        port,
        candidates,
        budget=DiffBudget(rows=MAX_ROWS),
        controls=DiffControls(
            workers=count_parallel_diffs(
                sqlmesh_compat.get_spark_session_of_sqlmesh(context.engine_adapter)
            ),
            cancelled=ports.stop,
            stop=port.cancel_queries,
            clock=ports.now,
            again=lambda: ports.pause(PAUSE_SECONDS),
        ),
        done=report_compared,
    )


def _is_changed_directly_by_apply(planned: BuiltPlan, name: str) -> bool:
    """Whether a changed model is new or was changed itself."""
    diff = planned.plan.context_diff
    return name not in diff.modified_snapshots or diff.directly_modified(name)


def _explain_missing_apply_comparison(diffs: Sequence[TableDiff]) -> str | None:
    """Explains why no model could be compared, if Spark is the reason; else None.

    Spark may have died meanwhile.
    """
    failed = [why for diff in diffs if (why := diff.skipped_because or "").startswith(FAILED)]
    if not failed or any(diff.compared for diff in diffs):
        return None
    return f"no model could be compared with prod. {failed[0]}"[:4_000]


def _list_candidates_of_apply_evidence(
    context: Context,
    planned: BuiltPlan,
    changed: Mapping[str, Snapshot],
    here: Mapping[str, SparkRelation],
    there: Mapping[str, SparkRelation],
    names: MessageNames,
    counts: Mapping[str, int],
) -> list[DiffCandidate]:
    """Lists the models to compare: those with a view on both sides, whose data can differ."""
    diff = planned.plan.context_diff
    stored = {
        s.name: s for s in context.state_reader.get_snapshots(list(changed.values())).values()
    }
    found = []
    empty = _map_applied_models_without_data(planned, stored)
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
            unavailable, unaffected = _describe_empty_applied_model(name, empty[name], names), False
        found.append(
            DiffCandidate(
                DiffSpec(
                    model=names.short_name(name),
                    prod=other.sql_text if other else view.sql_text,
                    pr=view.sql_text,
                    keys=list_key_columns(changed[name].model),
                    window=_find_time_window_of_apply_evidence(
                        planned, stored.get(name, changed[name]), old
                    ),
                    distinct=2 * counts.get(name, 0) <= MAX_ROWS_DISTINCT,
                    few=counts.get(name, FEW_ROWS + 1) <= FEW_ROWS,
                ),
                rows=2 * counts.get(name, 0),
                unavailable=unavailable,
                unaffected=unaffected and unavailable is not None,
            )
        )
    return found


def _map_applied_models_without_data(
    planned: BuiltPlan, stored: Mapping[str, Snapshot]
) -> dict[str, str]:
    """Maps changed models that cannot show the change to the model whose table has no data.

    That table is empty because the plan's window holds no whole interval of the model. A reader of
    such a table is computed from no rows.

    Args:
        stored: The changed snapshots from the state, with the intervals that were built.
    """
    found = {
        name: name
        for name, snapshot in sorted(stored.items())
        if snapshot.is_model
        and not snapshot.is_view
        and not snapshot.is_symbolic
        and not make_plan.read_intervals_held_before_plan(snapshot, planned.deployable)
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


def _describe_empty_applied_model(name: str, empty: str, names: MessageNames) -> str:
    if name == empty:
        return (
            "It has no data here: the plan's window holds no whole interval of it. "
            "`min-intervals: 1` or an earlier `start` gives it one."
        )
    return f"It reads {names.short_name(empty)}, which has no data in the plan's window."


def _find_time_window_of_apply_evidence(
    planned: BuiltPlan, new: Snapshot, old: Snapshot | None
) -> TimeWindow | None:
    """Finds the intervals of both sides, for models that are incremental by time; else None."""
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


# Whether prod fails an audit, too: the same query runs on prod's views.
#
# This separates a mistake of the change from an older one. Only a count leaves the warehouse.


NEW_MODEL = "The model is new: prod does not have it."

_LINE = 1_000


def repeat_audits_of_apply_on_prod(
    recorder: ApplyRecorder,
    port: DiffPort,
    adapter: EngineAdapter,
    there: Mapping[str, SparkRelation],
) -> None:
    """Runs each failed audit of an apply on prod, and records the result.

    Args:
        there: Prod's views, by the name of their model.
    """
    tables = {name: view.sql_text for name, view in there.items()}
    for model, key, question in recorder.list_failed_audits():
        rows, why = None, None
        if question.snapshot.name not in tables:
            why = NEW_MODEL
        else:
            try:
                rows = int(port.query_rows(question.render_sql(adapter, tables))[0][0])
            except DiffQueryError as error:
                # The usual cause is a column that prod's view lacks.
                why = str(error)[:_LINE]
            except Exception as error:
                why = (
                    f"The audit could not be rendered for prod: {extract_sentence_of_error(error)}"[
                        :_LINE
                    ]
                )
        recorder.record_prod_answer(model, key, rows, why)
