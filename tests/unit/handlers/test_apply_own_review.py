"""The review that an apply makes for itself, against what the comment says of the plan."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from typing import Any

import pytest

from ci_bot.bot.github.port import NotFound
from ci_bot.bot.handlers.own_review import (
    MAX_ARTIFACT_BYTES,
    confirm_comment_marker_by_own_review,
    find_why_own_review_has_other_plan,
)
from ci_bot.errors import RequestRefused
from ci_bot.protocol.base import Failure
from ci_bot.protocol.plan import Window
from ci_bot.protocol.plan_identity import PlanFlags, PlanIdentity, TargetSnapshot
from ci_bot.protocol.review_report import Report
from tests.factories import make_change, make_marker, make_report
from tests.publishing import Memory, publisher_of

WINDOW = Window(start=None, end="2024-01-11T00:00:00Z", execution_time="2024-01-11T00:00:00Z")


def identity(fingerprint: str, window: Window = WINDOW) -> PlanIdentity:
    return PlanIdentity(
        environment="pr_142",
        gateway="spark",
        suffix_target="schema",
        state_schema_version=1,
        flags=PlanFlags(),
        window=window,
        snapshots=[
            TargetSnapshot(
                model="shop.orders",
                fingerprint=fingerprint,
                category="breaking",
                preview=False,
                promoted=True,
                start=None,
                end=None,
            )
        ],
        removed=[],
        restatements=[],
        statements=[],
    )


REVIEWED, NOW = identity("1-1-1-1"), identity("2-2-2-2")


def report(of: PlanIdentity | None, **facts: Any) -> Report:
    return make_report(
        **{"identity": of, "plan_id": of.plan_id() if of else None, "decision": "go", **facts}
    )


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("report.json", content)
    return buffer.getvalue()


@dataclass
class WithArtifact(Memory):
    """GitHub with one artifact, or with the error that asking for it ends in."""

    artifact: bytes | Exception = b""

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        assert (run_id, name, max_bytes) == (8812, "ci-bot-report", MAX_ARTIFACT_BYTES)
        if isinstance(self.artifact, Exception):
            raise self.artifact
        return self.artifact


CONTENT = report(REVIEWED).to_json().encode()
MARKER = make_marker(
    plan=REVIEWED.plan_id(),
    window=WINDOW,
    report_run=8812,
    report_sha256=hashlib.sha256(CONTENT).hexdigest(),
)


def other(own: Report, artifact: bytes | Exception = b"", marker: Any = MARKER) -> Any:
    github = WithArtifact(artifact=artifact)
    return find_why_own_review_has_other_plan(own, marker, publisher_of(github), github)


def test_other_plan__is_none_where_this_run_makes_the_same_plan() -> None:
    assert other(report(REVIEWED)) is None
    assert other(report(REVIEWED, decision="no_go")) is None, "that is judged elsewhere"


def test_other_plan__shows_what_differs_from_the_reviewed_one() -> None:
    document = other(report(NOW), zipped(CONTENT))

    assert (document.result, document.reason_code) == ("refused", "plan_changed")
    assert document.plan_id == NOW.plan_id()
    assert document.difference.snapshots_changed == ["shop.orders"]
    assert REVIEWED.plan_id()[:12] in document.failure.message
    assert document.failure.exit_code == 3


@pytest.mark.parametrize("base", ["a" * 40, None])
def test_other_plan__keeps_both_commits_of_the_base_branch(base: str | None) -> None:
    publisher = publisher_of(WithArtifact(artifact=b""))
    marker = MARKER.model_copy(update={"base": base})
    own = report(NOW)

    assert (
        find_why_own_review_has_other_plan(own, marker, publisher, WithArtifact(artifact=b""))
        is not None
    )
    expected = (base, own.base_sha) if base else None
    assert publisher.template.base_moves == expected


# Not the file that the comment names; a file that the comment names, about another plan.
FOREIGN = report(identity("3-3-3-3")).to_json().encode()


@pytest.mark.parametrize(
    ("artifact", "marker"),
    [
        (NotFound("gone"), MARKER),
        (RequestRefused("the token lacks `actions: read`"), MARKER),
        (b"no zip file", MARKER),
        (zipped(b"{}"), MARKER),
        (zipped(FOREIGN), MARKER),
        (
            zipped(FOREIGN),
            MARKER.model_copy(update={"report_sha256": hashlib.sha256(FOREIGN).hexdigest()}),
        ),
        (b"", MARKER.model_copy(update={"report_run": None})),
        (b"", MARKER.model_copy(update={"report_sha256": None})),
    ],
    ids=["gone", "forbidden", "no-zip", "no-report", "foreign", "forged", "no-run", "no-hash"],
)
def test_other_plan__without_the_reviewed_sets_is_refused_without_a_difference(
    artifact: bytes | Exception, marker: Any
) -> None:
    document = other(report(NOW), artifact, marker)

    assert (document.result, document.reason_code) == ("refused", "plan_changed")
    assert document.difference is None


def test_other_plan__where_prod_has_caught_up_is_nothing_to_apply() -> None:
    document = other(report(None, changes=[], decision="no_changes"))

    assert (document.result, document.reason_code) == ("nothing_to_apply", "no_changes")
    assert document.plan_id == MARKER.plan
    assert document.failure is None


@pytest.mark.parametrize("category", [None, "uncategorized"])
def test_other_plan__names_the_changes_that_have_no_category(category: Any) -> None:
    changes = [make_change("shop.orders", category=category), make_change("shop.customers")]

    document = other(report(None, changes=changes))

    assert (document.result, document.reason_code) == ("refused", "uncategorized")
    assert "shop.orders." in document.failure.message
    assert "shop.customers" not in document.failure.message


@pytest.mark.parametrize(("exit_code", "result"), [(1, "failed"), (2, "refused")])
def test_other_plan__where_the_plan_fails_is_that_failure(exit_code: int, result: str) -> None:
    failure = Failure(
        stage="load", reason_code="bad_config", exit_code=exit_code, message="It does not load."
    )

    document = other(report(None, failure=failure, decision="no_go"))

    assert (document.result, document.reason_code) == (result, "bad_config")
    assert document.failure == failure


def test_confirmed__holds_nothing_that_the_comment_said_of_the_plan() -> None:
    said = MARKER.model_copy(
        update={"decision": "go", "head": "d" * 40, "window": None, "plan": "e" * 64}
    )
    own = report(NOW, decision="review", head_sha="a" * 40, merge_sha="c" * 40)

    known = confirm_comment_marker_by_own_review(said, own)

    assert (known.head, known.base, known.merge) == ("a" * 40, own.base_sha, "c" * 40)
    assert (known.plan, known.window, known.decision) == (NOW.plan_id(), WINDOW, "review")
    assert (known.key, known.pr, known.report_run) == (said.key, said.pr, said.report_run)
