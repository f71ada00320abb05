"""How long an acceptance holds: until the model or its data changes, and no other push ends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.review_report import Acceptance, Report
from tests.conftest import PROD_UNTIL
from tests.integration.test_team_policy import MODEL, TOP, top, weight
from tests.projects.duck import run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

pytestmark = pytest.mark.slow

REVENUE = "project/models/revenue.sql"


@dataclass(frozen=True)
class Accepted:
    """Pull request 7, whose filter its owner has accepted; what is tried is undone again."""

    made: Repository
    base: str
    head: str

    def undo(self) -> None:
        """The project as it was accepted; the state beside it stays as it is."""
        self.made.git("checkout", "-q", self.head, "--", "project")

    def review(self, files: Files, number: int = 7) -> Report:
        self.undo()
        commits = RequestedReviewCommits(
            base=self.base, head=self.made.commit(files) if files else self.head
        )
        return client(self.made).review("pr_7", baseline="state", commits=commits, number=number)


def client(made: Repository) -> Client:
    return Client(made.root, projects=("project",))


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accepted]:
    root: Path = tmp_path_factory.mktemp("accepted")
    made = write_repository(root, {TOP: top(100)})
    run_prod(made.shop, PROD_UNTIL)
    commits = made.change({TOP: top(200)})
    report = client(made).review("pr_7", baseline="state", commits=commits, number=7)
    assert weight(report) == "high"
    (changed,) = [change for change in report.changes if change.model == MODEL]
    assert changed.fingerprint is not None
    item = Acceptance(
        rule="filter-changed",
        model=MODEL,
        fingerprint=changed.fingerprint,
        severity="high",
        subjects=[risk.subject or "" for risk in report.risks if risk.rule == "filter-changed"],
        by="alice",
        at="2024-02-01T10:00:00Z",
        reason="thresholds move",
        comment_id=99,
    )
    assert client(made).accept(item, 7) == [item]
    yield Accepted(made, commits.base or "", commits.head or "")


def test_acceptance__holds_and_says_who(accepted: Accepted) -> None:
    report = accepted.review({})
    (found,) = [risk for risk in report.set_aside if risk.rule == "filter-changed"]
    assert found.weighed is not None
    assert (found.weighed.by, found.weighed.who, found.weighed.reason) == (
        "acceptance",
        "alice",
        "thresholds move",
    )


def test_acceptance__holds_when_something_else_is_pushed(accepted: Accepted) -> None:
    revenue = accepted.made.read(REVENUE)
    described = revenue.replace("kind FULL,", "kind FULL,\n  description 'Money.',")
    assert described != revenue
    report = accepted.review({REVENUE: described, "project/NOTES.md": "notes\n"})
    assert weight(report) == "none"
    assert "shop.revenue" in {change.model for change in report.changes}


@pytest.mark.parametrize("what", ["the model", "its data"])
@pytest.mark.by_day(1)
def test_acceptance__falls_when_the_model_or_its_data_changes(
    accepted: Accepted, what: str
) -> None:
    accepted.undo()
    revenue = accepted.made.read(REVENUE)
    more = {"the model": {TOP: top(300)}, "its data": {REVENUE: revenue.replace("SUM(", "MAX(")}}
    report = accepted.review(more[what])
    assert weight(report) == "high"
    assert any("no longer holds" in note for note in report.notes)


def test_acceptance__is_of_one_pull_request(accepted: Accepted) -> None:
    assert weight(accepted.review({}, number=8)) == "high"
