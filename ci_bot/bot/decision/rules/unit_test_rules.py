"""R02: unit tests that fail, and whether that is this pull request's doing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.bot.decision.registry import judges
from ci_bot.bot.decision.risks import counted, risk
from ci_bot.contracts.documents.plan import Severity, TestFailure, TestOnBase
from ci_bot.contracts.documents.report import ReviewFacts, Risk
from ci_bot.contracts.rules import RuleSpec, rule

FAILS = rule("R02-test-fails")
FAILED_BEFORE = rule("R02-test-failed-before")


class _Blame(NamedTuple):
    spec: RuleSpec
    severity: Severity | None
    why: str


_NEW: dict[TestOnBase, str] = {
    "passed": "It passes on the base branch",
    "absent": "The base branch does not have it",
    "unknown": "Whether it failed before is not known",
}
_BEFORE = _Blame(FAILED_BEFORE, None, "It fails on the base branch, too")
_UNTOUCHED = _Blame(
    FAILED_BEFORE,
    "medium",
    "Whether it failed before is not known, because the base branch's tests could not be run; this "
    "pull request changes neither the test nor a model that it covers",
)


@judges(FAILS, FAILED_BEFORE)
def tests_fail(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """A test that fails is a blocker, unless it failed before; then it is a note."""
    tests = facts.checks.tests
    for failure in tests.failures:
        first = next((line for line in failure.message.splitlines() if line.strip()), "")
        blame = _blame(failure)
        yield risk(
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
        yield risk(
            FAILS,
            f"{counted(tests.failed, 'unit test')} of {tests.run} fail.",
            "the tests pass (`sqlmesh test`)",
        )


def _blame(failure: TestFailure) -> _Blame:
    if failure.on_base == "failed":
        return _BEFORE
    if failure.on_base == "unknown" and failure.touched is False:
        return _UNTOUCHED
    return _Blame(FAILS, None, _NEW[failure.on_base])
