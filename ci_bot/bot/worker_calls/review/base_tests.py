"""Unit tests that fail: did they fail on the base branch, before this pull request?"""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.bot.worker_calls.client import Bench
from ci_bot.bot.worker_calls.requests import asking
from ci_bot.contracts.base import Failure
from ci_bot.contracts.base_tests import BaseTests, TestName
from ci_bot.contracts.documents.plan import TestFailure, TestOnBase
from ci_bot.contracts.documents.report import ReviewFacts
from ci_bot.contracts.messages import BaseTestsAsk, Owner
from ci_bot.errors import BotError, Cancelled


def compared_with_base(
    bench: Bench, facts: ReviewFacts, base: str | None, owner: Owner
) -> ReviewFacts:
    """The same facts; each failing unit test says how it ends on the base branch.

    It costs a run of the worker where a test fails, and nothing else. What the worker that loaded
    the pull request says about the base is not taken.

    Args:
        base: The commit of the base branch; None where it is unknown, and then nobody can tell.
    """
    tests = facts.checks.tests
    if not tests.failures:
        return facts
    before = _on_base(bench, tests.failures, base, owner)
    failures = [
        failure.model_copy(update={"on_base": before.get((failure.path, failure.name), "unknown")})
        for failure in tests.failures
    ]
    checks = facts.checks.model_copy(
        update={"tests": tests.model_copy(update={"failures": failures})}
    )
    return facts.model_copy(update={"checks": checks})


def _on_base(
    bench: Bench, failures: Iterable[TestFailure], base: str | None, owner: Owner
) -> dict[tuple[str | None, str], TestOnBase]:
    if base is None or not bench.git.has(base):
        return {}
    projects = bench.export_base(base)
    if not projects:
        return {}
    wanted = sorted({(failure.path or "", failure.name) for failure in failures})
    try:
        with asking():
            ask = BaseTestsAsk(
                projects=projects,
                gateway=bench.gateway,
                workplace=bench.workplace,
                base_repository=bench.base_directory,
                owner=owner,
                tests=[TestName(path=path or None, name=name) for path, name in wanted],
            )
        answer = bench.base_tests(ask)
    except Cancelled:
        raise
    except BotError:
        return {}  # the base's own code broke its process; the pull request is not to blame
    if isinstance(answer, Failure):
        return {}
    return _asked_for(answer, wanted)


def _asked_for(
    answer: BaseTests, wanted: list[tuple[str, str]]
) -> dict[tuple[str | None, str], TestOnBase]:
    asked = {(path or None, name) for path, name in wanted}
    return {
        (outcome.path, outcome.name): outcome.result
        for outcome in answer.outcomes
        if (outcome.path, outcome.name) in asked
    }
