"""From which base a policy may make findings lighter: the default branch, as GitHub says now."""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.actions.activities import Review
from ci_bot.bot.handlers.review import explain_why_policy_lowers_no_severity
from tests.unit.handlers.test_gate import OTHER, PULL

ONTO_MAIN = replace(PULL, default_branch="main")


def test_base__of_the_default_branch_is_trusted() -> None:
    assert explain_why_policy_lowers_no_severity(ONTO_MAIN, None, checked_out=OTHER) is None
    assert (
        explain_why_policy_lowers_no_severity(
            None, Review(number=7, onto_default=True), checked_out=OTHER
        )
        is None
    )


def test_base__of_another_branch_is_not() -> None:
    told = "not to be merged into the default branch"
    for pull in (
        replace(ONTO_MAIN, base_ref="lax"),
        replace(ONTO_MAIN, default_branch=None),
        replace(ONTO_MAIN, default_branch="trunk"),
    ):
        assert told in (explain_why_policy_lowers_no_severity(pull, None, checked_out=OTHER) or "")
    assert told in (
        explain_why_policy_lowers_no_severity(None, Review(number=7), checked_out=OTHER) or ""
    )
    assert told in (explain_why_policy_lowers_no_severity(None, None, checked_out=OTHER) or "")


def test_base__of_another_merge_commit_than_githubs_is_not() -> None:
    """The pull request was pointed at another branch while its merge commit was checked out."""
    for merge in ("f" * 40, None):
        pull = replace(ONTO_MAIN, merge_sha=merge)
        found = explain_why_policy_lowers_no_severity(pull, None, checked_out=OTHER)
        assert found is not None
        assert "GitHub's merge commit of now" in found


def test_base__as_github_describes_it_counts_more_than_the_event() -> None:
    pull = replace(ONTO_MAIN, base_ref="lax")
    assert explain_why_policy_lowers_no_severity(
        pull, Review(number=7, onto_default=True), checked_out=OTHER
    )
