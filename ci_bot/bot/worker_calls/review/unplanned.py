"""The facts of a review that has no plan: nothing is known, and nothing counts as passed."""

from __future__ import annotations

from collections.abc import Sequence

import ci_bot
from ci_bot.bot.worker_calls.review.review_options import ReviewOptions
from ci_bot.contracts.base import Failure, Versions
from ci_bot.contracts.documents.plan import (
    AuditsCheck,
    Checks,
    Cost,
    Lineage,
    LintCheck,
    TableDiffCheck,
    TestsCheck,
)
from ci_bot.contracts.documents.report import Baseline, Project, ReviewFacts, what_does_not_load

# A report holds so many failures of the base branch.
BASE_FAILURES = 20


def failed_facts(
    failure: Failure, options: ReviewOptions, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    """The facts of a plan that failed: nothing is known, and nothing counts as passed."""
    reason = "The plan failed before this could be checked."
    facts = _nothing(options, reason, projects=projects, gateway=gateway)
    return facts.model_copy(update={"failure": failure})


def unplanned_facts(
    base_failures: Sequence[Failure],
    options: ReviewOptions,
    *,
    projects: Sequence[str],
    gateway: str | None,
    baseline: Baseline,
) -> ReviewFacts:
    """The facts where there is no plan, and the pull request is not why: the base branch does not
    load, or what the state holds of another project."""
    reason = f"{what_does_not_load(base_failures)}."
    facts = _nothing(options, reason, projects=projects, gateway=gateway)
    known = list(base_failures)[:BASE_FAILURES]
    return facts.model_copy(update={"base_failures": known, "baseline": baseline})


def _nothing(
    options: ReviewOptions, reason: str, *, projects: Sequence[str], gateway: str | None
) -> ReviewFacts:
    return ReviewFacts(
        project=Project(paths=list(projects), gateway=gateway, dialect=None, models=0),
        environment=options.environment,
        baseline="state",
        identity=None,
        changes=[],
        backfill=[],
        work=[],
        restatements=[],
        statements=[],
        prod_plan=None,
        findings=[],
        checks=Checks(
            lint=LintCheck(status="not_run"),
            tests=TestsCheck(status="not_run", not_run_because=reason),
            audits=AuditsCheck(status="not_run", not_run_because=reason),
            table_diff=TableDiffCheck(status="not_run", not_run_because=reason),
        ),
        cost=Cost(intervals=0, batches=0, tables_rebuilt=0, basis="There is no plan to count."),
        stages=[],
        lineage=Lineage(),
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        timings={},
    )
