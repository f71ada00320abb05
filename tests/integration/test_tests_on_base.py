"""Unit tests that fail: what failed before is a note, what fails newly blocks, each with its cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.messages import BaselineChoice
from ci_bot.protocol.review_report import Report, Risk
from tests import nights
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop
from tests.projects.forward import write_forward_shop
from tests.worker import Client

TEST = "tests/test_customers.yaml"
RIGHT, WRONG = "total: 5}", "total: 6}"
OTHER_FORMULA = ("models/customers.sql", "SUM(amount)", "MAX(amount)")
Edit = Callable[[Shop], object]


class History:
    """The shop with a base commit and one on top of it."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.git = LocalGit(shop.project)

    def commit(self, edit: Edit) -> str:
        edit(self.shop)
        self.git.commit({}, "A change")
        return self.git("rev-parse", "HEAD")

    def review(self, base: Edit, head: Edit, baseline: BaselineChoice = "state") -> Report:
        commits = RequestedReviewCommits(base=self.commit(base), head=self.commit(head))
        return Client(self.shop.project).review("pr_7", commits=commits, baseline=baseline)


@pytest.fixture
def history(tmp_path: Path) -> History:
    shop = write_forward_shop(tmp_path)
    shop.write(".gitignore", ".cache\n")
    return History(shop)


def nothing(shop: Shop) -> None:
    shop.write("notes.md", "one line\n")


def a_line_of_the_readme(shop: Shop) -> None:
    shop.write("README.md", "# Shop\n")


def wrong_test(shop: Shop) -> None:
    shop.edit(TEST, RIGHT, WRONG)


def unit_tests(report: Report) -> Risk:
    """The one risk that speaks of a unit test's failure."""
    (risk,) = [risk for risk in report.risks if risk.rule.startswith("R02")]
    return risk


@pytest.mark.night
@pytest.mark.parametrize("baseline", nights.cases(["state", "base-branch"], by_day=["base-branch"]))
def test_failing_before__is_not_this_pull_requests_doing(
    history: History, baseline: BaselineChoice
) -> None:
    report = history.review(wrong_test, a_line_of_the_readme, baseline)

    risk = unit_tests(report)
    assert report.decision == "no_changes"
    assert (risk.rule, risk.severity) == ("R02-test-failed-before", "low")
    assert risk.evidence == (
        "Unit test `test_customers` fails: `total`: expected 6, actual 5. It fails on the base "
        "branch, too."
    )


@pytest.mark.parametrize("baseline", nights.cases(["state", "base-branch"], by_day=["state"]))
def test_failing_newly__blocks(history: History, baseline: BaselineChoice) -> None:
    report = history.review(nothing, lambda shop: shop.edit(*OTHER_FORMULA), baseline)

    risk = unit_tests(report)
    assert report.decision == "no_go"
    assert (risk.rule, risk.severity) == ("R02-test-fails", "blocker")
    assert "`total`: expected 5, actual 3. It passes on the base branch." in risk.evidence


@pytest.mark.night
def test_failing_otherwise__than_before_is_no_new_failure(history: History) -> None:
    report = history.review(wrong_test, lambda shop: shop.edit(*OTHER_FORMULA))

    assert unit_tests(report).rule == "R02-test-failed-before"


@pytest.mark.night
def test_a_new_test_that_fails__blocks(history: History) -> None:
    def new_test(shop: Shop) -> None:
        text = (shop.project / TEST).read_text().replace(RIGHT, WRONG)
        shop.write("tests/test_more.yaml", text.replace("test_customers:", "test_more:"))

    risk = unit_tests(history.review(nothing, new_test))

    assert risk.severity == "blocker"
    assert "The base branch does not have it." in risk.evidence


@pytest.mark.night
def test_a_test_in_another_file__is_found_by_its_name(history: History) -> None:
    def moved(shop: Shop) -> None:
        text = (shop.project / TEST).read_text()
        (shop.project / TEST).unlink()
        shop.write("tests/sales/test_customers.yaml", text)

    assert unit_tests(history.review(wrong_test, moved)).rule == "R02-test-failed-before"


@pytest.mark.night
@pytest.mark.parametrize(
    ("head", "severity"),
    [
        (lambda shop: shop.edit("models/top_customers.sql", "total > 5", "total > 6"), "medium"),
        (lambda shop: shop.edit("models/orders.sql", "grain id", "grain (id, ds)"), "blocker"),
    ],
    ids=["below what the test covers", "above it"],
)
def test_a_base_that_does_not_load__is_judged_by_what_changed(
    history: History, head: Edit, severity: str
) -> None:
    def broken(shop: Shop) -> None:
        wrong_test(shop)
        shop.write("models/broken.sql", "MODEL (name shop.broken); SELEC 1")

    def repaired(shop: Shop) -> None:
        (shop.project / "models/broken.sql").unlink()
        head(shop)

    risk = unit_tests(history.review(broken, repaired))

    assert risk.severity == severity
    assert "is not known" in risk.evidence


@pytest.mark.night
def test_a_broken_definition__does_not_hide_the_other_tests(history: History) -> None:
    def broken(shop: Shop) -> None:
        text = (shop.project / TEST).read_text()
        shop.write(
            "tests/test_broken.yaml",
            text.replace("test_customers:", "test_broken:").replace("shop.orders:", "shop.raw:"),
        )

    report = history.review(nothing, broken)

    tests = report.checks.tests
    assert (tests.run, tests.failed) == (2, 1)
    assert tests.failures[0].path == "tests/test_broken.yaml"
    assert "missing input model" in str(tests.failures[0].cause)
    assert str(history.shop.root) not in tests.failures[0].message


@pytest.mark.night
def test_a_run_without_failures__asks_nothing_of_the_base(history: History) -> None:
    commits = RequestedReviewCommits(
        base=history.commit(nothing), head=history.commit(a_line_of_the_readme)
    )
    reviewer = Client(history.shop.project)

    reviewer.review("pr_7", commits=commits, baseline="state")

    assert not [step for step in reviewer.heard.progress if "base branch" in step.message]
