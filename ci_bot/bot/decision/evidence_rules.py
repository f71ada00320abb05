"""R10: missing evidence is listed as missing, never as passed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ci_bot.bot.decision.risks import BotFacts, TeamLimits, count_noun, judges, make_risk
from ci_bot.protocol.plan import Severity, TestFailure, TestOnBase
from ci_bot.protocol.review_report import ReviewFacts, Risk
from ci_bot.protocol.rules import RuleSpec, find_rule, quote_names

_BASE_COMMIT_IS_THERE = "the base commit is there (`fetch-depth: 2`)"
CHECKOUT_INCOMPLETE = find_rule("checkout-incomplete")
FILES_NOT_READ = find_rule("R10-files-not-read")
FORK = find_rule("R10-fork")
NOT_CHECKED = find_rule("R10-not-checked")
PROD_NOT_FOUND = find_rule("R10-prod-not-found")


@judges(NOT_CHECKED)
def find_risk_of_missing_evidence(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Yields one risk for each kind of evidence that this review does not have."""
    if bot.too_large:
        yield make_risk(
            NOT_CHECKED,
            f"Too large to be read: {count_noun(len(bot.too_large), 'changed file')} "
            f"({quote_names(bot.too_large)}). No rule has checked them, also not for credentials.",
            "they are smaller, or a person has read them",
            subject="large files",
        )
    if not facts.changes and facts.failure is None:
        return
    checks = facts.checks
    gone = (
        (
            "unit tests",
            checks.tests.status in {"none", "not_run"},
            "Unit tests: the project has none."
            if checks.tests.status == "none"
            else f"Unit tests: not run. {checks.tests.not_run_because or ''}",
            "the changed models have unit tests",
        ),
        (
            "lint",
            checks.lint.status in {"off", "not_run"},
            "Lint: the project's linter is off."
            if checks.lint.status == "off"
            else "Lint: not run.",
            "the project's linter is on",
        ),
        (
            "audits",
            checks.audits.status == "not_run",
            f"Audits: not run. {checks.audits.not_run_because or ''}",
            "an apply to the PR environment ran them",
        ),
        (
            "data diff",
            checks.table_diff.status == "not_run",
            f"Data diff: not run. {checks.table_diff.not_run_because or ''}",
            "an apply to the PR environment compared the tables with prod",
        ),
        (
            "cost",
            bool(facts.cost.unknown),
            f"Cost: not estimated. {facts.cost.basis}"
            if facts.cost.executor_hours_mid is None
            else f"Cost: not known of {quote_names(facts.cost.unknown)}.",
            "an earlier apply has left its figures in the ledger",
        ),
        (
            "prod plan",
            facts.prod_plan is None and facts.failure is None,
            "Prod plan: not computed.",
            "the review can plan against prod",
        ),
        (
            "changed files",
            bot.changed_files is None and not bot.pull_request,
            "Changed files: not known, so rules that read files did not run.",
            _BASE_COMMIT_IS_THERE,
        ),
    )
    for what, absent, evidence, clears in gone:
        if absent:
            yield make_risk(NOT_CHECKED, evidence.strip(), clears, subject=what)


@judges(FILES_NOT_READ)
def find_risk_of_unread_files(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """The rules on changed files did not run, so nothing would show a credential in them."""
    if bot.changed_files is None and bot.pull_request:
        yield make_risk(
            FILES_NOT_READ,
            "Which files this pull request changes is not known, so they were not checked for "
            "credentials and code.",
            _BASE_COMMIT_IS_THERE,
        )
    if bot.unread_because is not None:
        yield make_risk(
            FILES_NOT_READ,
            "The changed files were not checked for credentials and for what the other rules on "
            f"files see: the process that reads them gave no answer, because {bot.unread_because}.",
            "the review has run again, or a person has read every changed file",
            subject="no answer",
        )


@judges(CHECKOUT_INCOMPLETE)
def judge_risk_of_incomplete_checkout(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """Files of the commit are missing, so that their models look removed."""
    if bot.missing_files:
        files = count_noun(len(bot.missing_files), "file")
        yield make_risk(
            CHECKOUT_INCOMPLETE,
            f"The checkout lacks {files} of this commit that SQLMesh loads "
            f"({quote_names(bot.missing_files)}), as a sparse checkout does. For the plan "
            "their content is removed.",
            "the workflow checks out the whole project: no `sparse-checkout:` in the `with:` of "
            "actions/checkout, or one with the project's directories",
            subject="files",
        )
    if bot.empty_submodules:
        one = len(bot.empty_submodules) == 1
        yield make_risk(
            CHECKOUT_INCOMPLETE,
            f"{count_noun(len(bot.empty_submodules), 'submodule')} below the project "
            f"{'is' if one else 'are'} empty ({quote_names(bot.empty_submodules)}). For "
            f"the plan {'its' if one else 'their'} content is removed.",
            "the workflow checks out with `submodules: true` in the `with:` of actions/checkout; "
            "on a laptop `git submodule update --init` gets them",
            severity="high",
            subject="submodules",
        )


@judges(FORK)
def find_risk_of_fork(facts: ReviewFacts, limits: TeamLimits, bot: BotFacts) -> Iterator[Risk]:
    """A PR from a fork is reviewed and never applied."""
    if bot.fork:
        yield make_risk(
            FORK,
            "The head branch is in a fork: this plan can't be applied to an environment.",
            "a maintainer pushes the branch into this repository",
        )


@judges(PROD_NOT_FOUND)
def find_risk_of_absent_prod(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """R10: the state answered and holds no prod, so nothing is known about prod."""
    missing = facts.prod_not_found
    if missing is None:
        return
    first, on_base = missing.first_deployment is not None, facts.baseline == "base-branch"
    if first:
        so = "This is taken for the first deployment."
    elif on_base:
        so = "The base branch was compared with, in place of prod."
    else:
        so = "Every model counts as new, so what changes is not known."
    yield make_risk(
        PROD_NOT_FOUND,
        f"{missing.describe_absence()} {so}",
        "prod is built" if first else missing.hint,
        severity="low" if first or on_base else None,
    )


# R02: unit tests that fail, and whether this pull request causes that.


FAILS = find_rule("R02-test-fails")
FAILED_BEFORE = find_rule("R02-test-failed-before")


class _BlameForRisk(NamedTuple):
    spec: RuleSpec
    severity: Severity | None
    why: str


_NEW: dict[TestOnBase, str] = {
    "passed": "It passes on the base branch",
    "absent": "The base branch does not have it",
    "unknown": "Whether it failed before is not known",
}

_BEFORE = _BlameForRisk(FAILED_BEFORE, None, "It fails on the base branch, too")

_UNTOUCHED = _BlameForRisk(
    FAILED_BEFORE,
    "medium",
    "Whether it failed before is not known, because the base branch's tests could not be run; this "
    "pull request changes neither the test nor a model that it covers",
)


@judges(FAILS, FAILED_BEFORE)
def judge_risk_of_failing_tests(
    facts: ReviewFacts, limits: TeamLimits, bot: BotFacts
) -> Iterator[Risk]:
    """A test that fails is a blocker; if it failed before, it is only a note."""
    tests = facts.checks.tests
    for failure in tests.failures:
        first = next((line for line in failure.message.splitlines() if line.strip()), "")
        blame = _blame_unit_test_failure(failure)
        yield make_risk(
            blame.spec,
            f"Unit test `{failure.name}` fails: {(failure.cause or first).rstrip('.')}. "
            f"{blame.why}.",
            "the test passes (`sqlmesh test`)",
            severity=blame.severity,
            subject=failure.name,
            model=failure.model,
            path=failure.path,
        )
    if tests.status == "failed" and not tests.failures:
        yield make_risk(
            FAILS,
            f"{count_noun(tests.failed, 'unit test')} of {tests.run} fail.",
            "the tests pass (`sqlmesh test`)",
        )


def _blame_unit_test_failure(failure: TestFailure) -> _BlameForRisk:
    if failure.on_base == "failed":
        return _BEFORE
    if failure.on_base == "unknown" and failure.touched is False:
        return _UNTOUCHED
    return _BlameForRisk(FAILS, None, _NEW[failure.on_base])
