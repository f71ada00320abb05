"""Who gets the page: each review and apply, in the action and on a laptop; and how it is opened."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.cli.local_review import open_page_on_laptop
from ci_bot.bot.handlers import apply, apply_evidence, cleanup, review
from ci_bot.bot.handlers.publisher import REPORT_DIRECTORY, HandlerPublisher
from ci_bot.bot.report.html.page import render_html_page_of_document
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.review_report import Report
from tests.factories import make_cleanup, make_context, make_marker
from tests.golden.record import read
from tests.golden.samples import report as recorded
from tests.publishing import NOON, RUNNER, Memory, machine_at, publisher_of
from tests.unit.report.html.test_page import Seen

NUMBER = 142


@pytest.fixture
def github() -> Memory:
    return Memory()


@pytest.fixture
def publisher(github: Memory, tmp_path: Path) -> HandlerPublisher:
    return of_a_run(github, tmp_path)


def of_a_run(github: Memory, workspace: Path) -> HandlerPublisher:
    settings = ActionSettings(
        inputs=ActionInputs(), runner=replace(RUNNER, workspace=str(workspace))
    )
    return publisher_of(github, settings=settings)


def publish(report: Report, publisher: HandlerPublisher) -> None:
    activity = activities.Review(
        number=NUMBER,
        head_sha=report.head_sha,
        base_sha=report.base_sha,
        merge_sha=report.merge_sha,
    )
    review.publish_review(report, activity, publisher.settings, publisher)


def files(workspace: Path) -> list[str]:
    return sorted(path.name for path in (workspace / REPORT_DIRECTORY).iterdir())


def sections(workspace: Path) -> dict[str, dict[str, Any]]:
    text = (workspace / REPORT_DIRECTORY / "report.html").read_text("utf-8")
    return {section["id"]: section for section in Seen(text).data()}


def test_review__leaves_its_page_beside_the_document(
    publisher: HandlerPublisher, tmp_path: Path
) -> None:
    report = recorded("small_change")
    publish(report, publisher)
    assert files(tmp_path) == ["report.html", "report.json", "report.md", "report.sarif"]
    found = sections(tmp_path)
    written = json.loads((tmp_path / REPORT_DIRECTORY / "report.json").read_text("utf-8"))
    assert found["models"]["count"] == len(written["changes"])
    assert "history" not in found, "it is the first plan"


def test_review__of_another_plan__shows_the_decisions_before_it(
    github: Memory, tmp_path: Path
) -> None:
    publish(recorded("small_change"), of_a_run(github, tmp_path))
    publish(recorded("destructive_change"), of_a_run(github, tmp_path))
    steps = sections(tmp_path)["history"]["parts"][0]["steps"]
    assert [step[0] for step in steps] == ["review", "no_go"]


def test_apply__replaces_the_page_by_one_with_the_review(
    publisher: HandlerPublisher, tmp_path: Path
) -> None:
    own = recorded("small_change")
    marker = make_marker(plan=own.plan_id)
    apply.show_own_review_in_run(own, marker, publisher)
    apply_evidence.publish_apply(cast(ApplyDocument, read("applied")), publisher, marker)
    assert files(tmp_path) == [
        *("apply.json", "apply.md"),
        *("report.html", "report.json", "report.md", "report.sarif"),
    ]
    assert list(sections(tmp_path))[:3] == ["data", "built", "findings"]


def test_cleanup__has_the_proof_as_its_page(publisher: HandlerPublisher, tmp_path: Path) -> None:
    cleanup.publish_cleanup(make_cleanup(), publisher)
    assert files(tmp_path) == ["cleanup.json", "cleanup.md", "report.html"]
    ((table,),) = (section["parts"] for section in sections(tmp_path).values())
    rows = [(row[0][0], row[1], row[2][1], row[3]) for row in table["rows"]]
    assert rows == [
        (
            "sqlmesh__stg.stg__orders__2817364",
            "physical table",
            "stays",
            "the pull request was merged and prod will reuse it",
        ),
        *(
            (f"spark_catalog.{name}__pr_142", "schema", "dropped", "It was empty after its views.")
            for name in ("stg", "mart")
        ),
        *(
            (f"spark_catalog.{name}", "view", "dropped", "The environment made it.")
            for name in ("stg__pr_142.orders", "mart__pr_142.daily_sales")
        ),
    ]


def test_cleanup__that_left_something_says_so_first(
    publisher: HandlerPublisher, tmp_path: Path
) -> None:
    document = cast(CleanupDocument, read("cleanup_failed"))
    cleanup.publish_cleanup(document, publisher)
    page = Seen((tmp_path / "ci-bot-report" / "report.html").read_text("utf-8"))
    (table, *_), *_ = (section["parts"] for section in page.data())
    assert table["rows"][0][2][1] in ("left over", "not ours, left alone")
    named = {row[0][0] for row in table["rows"]}
    assert {left.object for left in document.leftovers} | set(document.foreign) <= named


def test_to_page__on_a_laptop() -> None:
    context = make_context()
    document = cast(ApplyDocument, read("applied"))
    alone = render_html_page_of_document(document, context)
    reviewed = render_html_page_of_document(document, context, recorded("small_change"))
    assert "findings" not in {section["id"] for section in Seen("".join(alone)).data()}
    assert "findings" in {section["id"] for section in Seen("".join(reviewed)).data()}
    assert [
        each["id"]
        for each in Seen("".join(render_html_page_of_document(make_cleanup(), context))).data()
    ] == ["proof"]


@pytest.mark.parametrize("works", [True, False])
@pytest.mark.parametrize("written", [True, False])
def test_open_page__says_where_it_is(tmp_path: Path, works: bool, written: bool) -> None:
    asked: list[str] = []

    def opener(address: str) -> bool:
        asked.append(address)
        return works

    log = io.StringIO()
    machine = replace(machine_at(NOON), log=log, temporary=tmp_path)
    output = tmp_path / "with space" if written else None
    if output:
        output.mkdir()
        (output / "report.html").write_text("page")
    file = open_page_on_laptop("page", output, machine, opener)
    assert file.read_text("utf-8") == "page"
    assert asked == [file.as_uri()]
    assert asked[0] in log.getvalue()
    assert ("No browser" in log.getvalue()) != works
    assert file.is_relative_to(tmp_path)


@pytest.fixture(autouse=True)
def nothing_else(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list(tmp_path.rglob("*.part"))
