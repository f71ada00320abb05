"""What a change does to results: findings, runs of changed queries, and the column impact.

None of it reads the state or an engine. So it can run in a process beside this one, which describes
the plan meanwhile; in a large project each of the two takes more than a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from ci_bot.protocol.plan import Finding
from ci_bot.protocol.review_inputs import ModelExecution
from ci_bot.protocol.review_report import Impact
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames
from ci_bot.worker.planning import BuiltPlan
from ci_bot.worker.review.compared_queries import add_witness_tests_to_review
from ci_bot.worker.review.lineage_inputs import make_column_impact
from ci_bot.worker.rules import (
    RuleInputs,
    compare_seed_rows,
    find_missed_changes,
    find_project_findings,
    list_executions,
)
from ci_bot.worker.runtime import (
    ForkedBackgroundWork,
    WorkerPhaseClock,
    java_process,
    may_fork_worker,
    write_worker_log_line,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context


@dataclass(frozen=True)
class ChangeFacts:
    """What a change does to results.

    Attributes:
        seconds: the time of each phase.
    """

    findings: list[Finding]
    executions: list[ModelExecution]
    impact: Impact
    seconds: dict[str, float]


_FACTS = TypeAdapter(ChangeFacts)
FindChangeFacts = Callable[[], ChangeFacts]


def find_change_facts(
    context: Context, planned: BuiltPlan | None, names: MessageNames, inputs: RuleInputs
) -> ChangeFacts:
    """Runs the rules and the changed queries, and follows the changed columns to their readers."""
    clock = WorkerPhaseClock()
    with clock.time_phase("rules"):
        findings = find_project_findings(inputs)
        executions = add_witness_tests_to_review(context, inputs, list_executions(inputs))
    with clock.time_phase("impact"):
        impact = make_column_impact(
            planned,
            names,
            findings,
            compare_seed_rows(inputs),
            executions,
            partial(find_missed_changes, inputs),
        )
    return ChangeFacts(findings, executions, impact, clock.phases)


@contextmanager
def find_change_facts_beside(
    find: FindChangeFacts, context: Context, answer: Path
) -> Iterator[FindChangeFacts]:
    """Starts `find` in a process beside this one, and yields a function that returns its result.

    If this process may not be forked, `find` runs here, and at once: what follows may change
    SQLMesh's snapshots. If the other process fails, it runs here, too.

    Args:
        context: its connections are closed off in the other process.
        answer: a new file for the result.
    """
    if not may_fork_worker() or java_process.find_active_java() is not None:
        found = find()
        yield lambda: found
        return
    with ForkedBackgroundWork(partial(_find_without_connections, find, context), answer) as beside:

        def wait_for_facts() -> ChangeFacts:
            try:
                return _FACTS.validate_json(beside.wait_for_result())
            except ChildProcessError as error:
                write_worker_log_line(
                    f"The process that looked for findings {error}. They are looked for again."
                )
                return find()

        yield wait_for_facts


def _find_without_connections(find: FindChangeFacts, context: Context) -> str:
    """Runs `find` in a forked process, which must not use the connections of the first one.

    Raises:
        RuntimeError: something asked for a connection; the result may lack what it wanted.
    """
    closed = sqlmesh_compat.close_off_sqlmesh_connections(context)
    facts = find()
    if closed.was_used:
        raise RuntimeError("a rule asked for the state or the engine")
    return _FACTS.dump_json(facts).decode()
