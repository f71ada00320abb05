"""What a run publishes once the data is there: outputs, files, comment and the short note."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.actions.workflow_commands import ActionStepOutputs
from ci_bot.bot.handlers import apply, apply_evidence
from ci_bot.bot.handlers.publisher import REPORT_DIRECTORY, HandlerPublisher
from ci_bot.protocol.apply_report import ApplyDocument, ApplyVerdict
from ci_bot.protocol.base import Failure
from ci_bot.protocol.comment import Marker
from tests.factories import PLAN, make_apply, make_context, make_marker, make_report, make_risk
from tests.publishing import RUNNER, Memory, publisher_of
from tests.unit.decision.test_clearing import diff

OWN = make_report(
    risks=[make_risk("R06-breaking-rebuild", model="mart.revenue")],
    decision="review",
    reasons=["R06-breaking-rebuild on mart.revenue: x"],
)
SAME = diff("mart.revenue")


def published(
    tmp_path: Path, document: ApplyDocument, own: Any = OWN
) -> tuple[Memory, dict[str, Any], HandlerPublisher]:
    """The pull request afterwards, and the files by name."""
    github = Memory()
    settings = ActionSettings(
        inputs=ActionInputs(), runner=replace(RUNNER, workspace=str(tmp_path))
    )
    publisher = publisher_of(github, settings=settings, template=make_context(marker=None))
    publisher.outputs = ActionStepOutputs(
        tmp_path / "outputs",
        delimiter=publisher.machine.token,
        warn=publisher.commands.annotate_warning,
    )
    marker = make_marker(phase="planned", decision=own.decision if own else None)
    assert isinstance(marker, Marker)
    if own:
        apply.show_own_review_in_run(own, marker, publisher)
    apply_evidence.publish_apply(document, publisher, marker)
    files = tmp_path / REPORT_DIRECTORY
    found = {path.stem: json.loads(path.read_text()) for path in files.glob("*.json")}
    found["outputs"] = (tmp_path / "outputs").read_text()
    return github, found, publisher


def test_publish__a_cleared_finding_is_in_outputs_files_comment_and_note(tmp_path: Path) -> None:
    github, files, publisher = published(tmp_path, make_apply(plan_id=PLAN, table_diff=[SAME]))
    assert _output(files, "decision") == "go"
    assert json.loads(_output(files, "result"))["decision"] == "go"
    assert files["apply"]["verdict"]["decision"] == "go"
    assert files["apply"]["verdict"]["cleared"][0]["weighed"]["by"] == "data_diff"
    assert files["report"]["decision"] == "go"
    assert [risk["rule"] for risk in files["report"]["set_aside"]] == ["R06-breaking-rebuild"]
    comment, note = (found.body for found in github.comments)
    assert "**Decision with this data: 🟢 Go** (the review said 🟡 Review)" in comment
    assert "0 of 48 rows differ from `prod` in `mart.revenue`" in note
    assert "Decision: Go." in note
    # What the plan was reviewed with stays: the next apply of it is told no other decision.
    marker = publisher.read_marker()
    assert marker is not None
    assert marker.decision == "review"


def test_publish__the_check_has_the_decision_with_the_data(tmp_path: Path) -> None:
    github, _, _ = published(tmp_path, make_apply(plan_id=PLAN, table_diff=[SAME]))
    (check,) = github.checks
    assert check.conclusion == "success"
    assert "0 of 48 rows differ from `prod`" in check.summary.splitlines()[0]


def test_publish__the_check_of_an_apply_that_failed_is_no_success(tmp_path: Path) -> None:
    failure = Failure(stage="apply", reason_code="failed", exit_code=1, message="An audit failed.")
    document = make_apply(result="failed", reason_code="failed", failure=failure, plan_id=PLAN)
    own = OWN.model_copy(update={"decision": "go", "risks": [], "findings": [], "reasons": []})
    github, _, _ = published(tmp_path, document, own)
    (check,) = github.checks
    assert (check.conclusion, check.title) == (
        "neutral",
        "Go, but the apply failed: An audit failed.",
    )


def test_publish__a_verdict_of_the_worker_is_not_heard(tmp_path: Path) -> None:
    forged = ApplyVerdict(decision="go", reasons=["trust me"])
    document = make_apply(plan_id="e" * 64, table_diff=[SAME], verdict=forged)
    _, files, _ = published(tmp_path, document)
    assert files["apply"]["verdict"] is None
    assert _output(files, "decision") == "review"
    assert files["report"]["decision"] == "review"


def _output(files: dict[str, Any], name: str) -> str:
    """Of an output that is set twice the last value counts."""
    lines = files["outputs"].splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith(f"{name}<<")]
    return str(lines[starts[-1] + 1])
