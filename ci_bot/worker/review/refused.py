"""A review of a project that loads, and that SQLMesh refuses to plan.

The refusal is one sentence about one model. What the rules see needs no plan: they compare the
models with prod's, and say what else a reader has to know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ci_bot.contracts.documents.plan import Lineage
from ci_bot.contracts.documents.plan_identity import PlanFlags
from ci_bot.contracts.documents.report import ReviewFacts
from ci_bot.contracts.messages import ReviewRequest
from ci_bot.worker.cost.estimate import estimate
from ci_bot.worker.plan.drift import Drift
from ci_bot.worker.plan.requested import PlanRefusedError
from ci_bot.worker.process import load_trace
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project import validation
from ci_bot.worker.project.directories import place_of
from ci_bot.worker.project.opening import OpenProject, described_project, versions_of
from ci_bot.worker.review.checks import run_checks
from ci_bot.worker.review.policy_scopes import scopes_of_told
from ci_bot.worker.review.rule_inputs import refused_inputs
from ci_bot.worker.rules import find
from ci_bot.worker.words.names import Names
from ci_bot.worker.words.problems import failure_of


def refused(
    error: PlanRefusedError,
    opened: OpenProject,
    request: ReviewRequest,
    flags: PlanFlags,
    clock: Clock,
) -> ReviewFacts:
    """The refusal with its model, the findings on the models, and the checks that need no plan."""
    context = opened.context
    names = Names(context.default_catalog, context.default_dialect)
    repository = Path(request.workplace.repository)
    place, stamp = place_of(request, request.projects), versions_of(opened)
    checked = run_checks(
        context,
        None,
        names,
        repository,
        clock,
        project=validation.of_project(opened, place, stamp),
        changed_files=request.changed_files,
    )
    with clock.phase("rules"):
        drift = Drift.of(context.models, request.changed_files, repository, load_trace.opened())
        inputs = refused_inputs(opened, drift, request, flags)
        found = find(inputs)
        told = (*found, *checked.lint.findings)
        scoped = scopes_of_told(context, request.scopes, inputs, told)
    failure = failure_of(error, stage="plan", repository=repository)
    paths = {
        names.of(fqn): inputs.path_of(model)
        for side in (inputs.before, inputs.after)
        for fqn, model in side.items()
    }
    cause = next(iter(error.models), None)
    return ReviewFacts(
        project=described_project(opened, place),
        environment=request.environment,
        baseline=opened.baseline,
        prod_plan=None,
        findings=found,
        checks=checked,
        versions=stamp,
        timings=dict(clock.phases),
        failure=failure.model_copy(
            update={"model": cause, "path": failure.path or paths.get(cause or "")}
        ),
        scoped=scoped,
        prod_not_found=opened.prod_not_found,
        base_models=opened.base_models,
        **no_plan(),
    )


def no_plan() -> dict[str, Any]:
    return {
        "identity": None,
        "changes": [],
        "backfill": [],
        "work": [],
        "restatements": [],
        "statements": [],
        "lineage": Lineage(),
        "cost": estimate([]),
        "stages": [],
    }
