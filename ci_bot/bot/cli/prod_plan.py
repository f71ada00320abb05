"""`ci-bot prod-plan`: what a deployment would do to prod, and whether that was reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ci_bot.bot.actions import NO_CHANGES
from ci_bot.bot.cli.session import (
    LEAVE_ONE_OUT,
    open_worker_client_on_laptop,
    raise_bad_input_of_laptop,
    read_origin_url,
)
from ci_bot.bot.github import find_github_repository
from ci_bot.bot.report import SENTENCES, TextPage, make_page_of_screen, make_screen, words
from ci_bot.bot.worker_client import RequestedReviewCommits, WorkerReviewOptions, review
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.host import Machine
from ci_bot.protocol.base import shorten_plan_id
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Owner
from ci_bot.protocol.plan import ProdPlan
from ci_bot.protocol.plan_identity import GivenFlags, matches_plan_id
from ci_bot.protocol.review_inputs import DeploymentPlan, ProdRestatement
from ci_bot.protocol.review_report import Report

# A review plans prod and an environment; this one is only compared with prod and never made.
_BESIDE = EnvironmentName("prod_plan")
NOTHING = ProdPlan(changes=0, backfill=[], would_fail=False)


def plan_prod_on_laptop(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    expect: str | None,
    reviewed: str | None,
    pull_requests: Sequence[int],
    restatements: str | None,
    forward_only: bool | None,
    allow_destructive: Sequence[str],
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
    form: Literal["terminal", "json"],
) -> int:
    """Plans prod without changing it; `expect` or `reviewed` say which plan it has to be.

    Args:
        expect: A plan id of prod, or `none`.
        reviewed: A review's report.json with the expected plan of prod.
        pull_requests: Those that are deployed; what owners have recorded for them is planned, too.
        restatements: A file to write the restatements to, for SQLMesh's own command line.

    Raises:
        BadInput: the project or its state cannot be read, or SQLMesh's own command line would
            make another plan of this project.
        RequestRefused: prod's plan is not the expected one, or a restatement no longer holds.
        BotError: there is no plan: the project does not load, or SQLMesh refuses it.
    """
    if expect is not None and reviewed is not None:
        raise BadInput(
            "`--expect` and `--reviewed` both say which plan is meant.",
            hint=LEAVE_ONE_OUT,
            reason_code="bad_input",
        )
    if reviewed is not None:
        expect = read_shown_plan_id(machine.directory / reviewed)
    with open_worker_client_on_laptop(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        origin = read_origin_url(client)
        whose = (
            find_github_repository(machine.environ, origin) if pull_requests else origin or "local"
        )
        options = WorkerReviewOptions(
            environment=_BESIDE,
            owner=Owner(name=whose),
            restated_by=tuple(dict.fromkeys(pull_requests)),
            # No commit: the project counts as it is in the checkout, and no files count as changed.
            commits=RequestedReviewCommits(),
            baseline="state",
            flags=GivenFlags(
                forward_only=forward_only, allow_destructive=sorted(allow_destructive)
            ),
            python_path=tuple(client.python_path),
        )
        report = review.request_review_and_judge(
            client, options, planned_at=machine.format_timestamp()
        )
    plan = DeploymentPlan(
        **dict(read_prod_plan_on_laptop(report)),
        restatements=report.prod_restatements,
    )
    absence = _describe_absence_of_prod(report)
    if form == "json":
        if absence is not None:
            print(absence, file=machine.log, flush=True)
        print(plan.to_json(indent=2), file=machine.out, flush=True)
    else:
        screen = make_screen(machine)
        page = make_page_of_screen(screen)
        _fill_prod_plan_page(page, plan, report, absence)
        print(page.render_text(), file=machine.out, end="", flush=True)
    if expect is not None:
        check_expected_plan(plan, expect)
    check_restatements(plan.restatements)
    if restatements is not None:
        _write_restatements(machine.directory / restatements, plan.restatements)
    return 0


def read_shown_plan_id(path: Path) -> str:
    """Reads the id of the plan that a review showed for prod, or `none` if it showed no change.

    Raises:
        BadInput: it is no report of a review, or it shows no plan of prod.
    """
    try:
        report = Report.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadInput(
            f"`{path.name}` cannot be read as the report of a review.",
            hint="`--reviewed` takes the file report.json of a review's artifact, written by the "
            "release that is installed here or an older one.",
            reason_code="bad_input",
        ) from error
    plan = report.prod_plan
    if plan is not None and plan.plan_id is not None:
        return plan.plan_id
    if report.baseline == "state" and report.failure is None and not (plan and plan.would_fail):
        return NO_CHANGES
    raise BadInput(
        "The review shows no plan of prod: it failed, or compared with the base branch.",
        hint="Look at `ci-bot prod-plan`, and deploy it by its id (`--expect`) if it is wanted.",
        reason_code="no_reviewed_plan",
    )


def read_prod_plan_on_laptop(report: Report) -> ProdPlan:
    """Reads the review's plan for prod.

    Raises:
        BadInput, BotError: see `plan_prod_on_laptop`.
    """
    raise_bad_input_of_laptop(report.failure)
    if report.failure is not None:
        raise _make_plan_error(report.failure.message, report.failure.hint)
    categorizer = next((o for o in report.options if o.name == "auto-categorize-changes"), None)
    if categorizer is not None:
        raise BadInput(
            f"`{categorizer.key}` is not read by `sqlmesh plan prod`, which would categorize "
            "changes otherwise than this plan.",
            hint="Move it to `plan.auto_categorize_changes`: that holds for reviews, too.",
            reason_code="bad_config",
        )
    plan = report.prod_plan or NOTHING
    if plan.would_fail:
        raise _make_plan_error(f"{SENTENCES.prod_plan_fails}: {plan.failure}", None)
    return plan


def check_expected_plan(plan: ProdPlan, expected: str) -> None:
    """Checks that this is the plan that was reviewed.

    Args:
        expected: A plan id of 8 digits or more, or `none`: nothing changes.

    Raises:
        RequestRefused: it is not.
    """
    if expected == NO_CHANGES:
        if plan.plan_id is None:
            return
        reviewed = "and the review showed no change"
    elif plan.plan_id is not None and matches_plan_id(expected, plan.plan_id):
        return
    else:
        reviewed = f"and the reviewed one is `{shorten_plan_id(expected)}`"
    found = f"is `{shorten_plan_id(plan.plan_id)}`" if plan.plan_id else "changes nothing"
    raise RequestRefused(
        f"The plan for prod {found}, {reviewed}. Nothing was touched.",
        hint="Something else was merged or deployed since the review, or it had other options. "
        "Look at this plan, and deploy it by its own id if it is wanted.",
        reason_code="plan_changed",
    )


def check_restatements(items: Sequence[ProdRestatement]) -> None:
    """Checks that each restatement is what was reviewed when it was recorded.

    Raises:
        RequestRefused: one is not.
    """
    problems = [
        f"The restatement of `{item.recorded.model}` that `@{item.recorded.by}` asked for does not "
        f"hold any more: {item.problem}"
        for item in items
        if item.problem is not None
    ]
    if problems:
        raise RequestRefused(
            f"{' '.join(problems)} Nothing was touched.",
            hint="Deploy without it: leave `--pull-request` out, and restate what is still wanted "
            "by hand, with SQLMesh's own `--restate-model`.",
            reason_code="restatement_changed",
        )


def _write_restatements(path: Path, items: Sequence[ProdRestatement]) -> None:
    """Writes one a line, in the order in which they were recorded.

    Raises:
        BadInput: the file cannot be written.
    """
    lines = [
        "\t".join(
            [item.recorded.model, item.window.start, item.window.end, item.window.execution_time]
        )
        for item in items
        if item.window is not None and item.window.start and item.window.end
    ]
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"The file for the restatements cannot be written ({error.strerror}).",
            hint="Choose another path for `--restatements`.",
            reason_code="bad_path",
        ) from error


def _make_plan_error(message: str, hint: str | None) -> BotError:
    return BotError(
        message, hint=hint or "`sqlmesh plan prod --explain` shows the same.", reason_code="failed"
    )


def _describe_absence_of_prod(report: Report) -> str | None:
    """Says that the state holds no prod, and what a deployment then does; None if it holds one."""
    missing = report.prod_not_found
    if missing is None:
        return None
    return (
        f"{missing.describe_absence()} So every model counts as new, and a deployment builds all "
        "of them. If prod has been built, check the gateway's `state_connection` and its "
        "`state_schema`, their variables, and what this account may read."
    )


def _fill_prod_plan_page(
    page: TextPage, plan: DeploymentPlan, report: Report, absence: str | None
) -> None:
    if plan.plan_id is None and absence is not None:
        page.add_title("Prod's plan: there is no prod, and no model to deploy", None)
    elif plan.plan_id is None:
        page.add_title("Prod's plan: nothing changes", None)
    else:
        page.add_title(
            f"Prod's plan {shorten_plan_id(plan.plan_id)} · "
            f"{words.format_count(plan.changes, 'model')} would change",
            None,
        )
    if absence is not None:
        page.add_gap()
        page.add_paragraph(absence)
        page.add_gap()
    if plan.plan_id is not None:
        _add_prod_changes(page, plan, report)
    if plan.restatements:
        page.add_heading("What prod builds again after it")
    for item in plan.restatements:
        built = words.format_count(len(item.work), "model")
        request = f"asked by @{item.recorded.by}: {item.recorded.reason}"
        verdict = item.problem or (
            f"{item.window.start} to {item.window.end}, {built}" if item.window else built
        )
        page.add_item(f"{item.recorded.model}: {verdict} ({request})")


def _add_prod_changes(page: TextPage, plan: DeploymentPlan, report: Report) -> None:
    for change in report.changes:
        category = (
            f", {words.CATEGORIES.get(change.category, change.category)}" if change.category else ""
        )
        page.add_item(f"{change.model}: {change.change}{category}")
    built = [item for item in plan.full_backfill if item.action != "recreate_view"]
    if built:
        page.add_heading("What prod builds")
    for item in built:
        since = f" since {item.start[:10]}" if item.start else ""
        page.add_item(f"{item.model}: {words.format_count(item.intervals, 'interval')}{since}")
