"""Unit tests that fail: did they fail on the base branch, before this pull request?"""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.contracts.base import Failure
from ci_bot.contracts.base_tests import BaseTests, TestName
from ci_bot.contracts.documents.plan import TestFailure, TestOnBase
from ci_bot.contracts.documents.report import ReviewFacts
from ci_bot.contracts.messages import BaseTestsRequest, Owner
from ci_bot.errors import BotError


def compared_with_base(
    client: WorkerClient, facts: ReviewFacts, base: str | None, owner: Owner
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
    before = _on_base(client, tests.failures, base, owner)
    failures = [
        failure.model_copy(update={"on_base": before.get((failure.path, failure.name), "unknown")})
        for failure in tests.failures
    ]
    checks = facts.checks.model_copy(
        update={"tests": tests.model_copy(update={"failures": failures})}
    )
    return facts.model_copy(update={"checks": checks})


def _on_base(
    client: WorkerClient, failures: Iterable[TestFailure], base: str | None, owner: Owner
) -> dict[tuple[str | None, str], TestOnBase]:
    wanted = sorted({(failure.path or "", failure.name) for failure in failures})
    try:
        if base is None or not client.git.has(base):
            return {}
        projects = client.export_base(base)
        if not projects:
            return {}
        request = client.request(
            BaseTestsRequest,
            base_repository=client.base_directory,
            owner=owner,
            tests=[TestName(path=path or None, name=name) for path, name in wanted],
        ).model_copy(update={"projects": projects})
        answer = client.base_tests(request)
    except BotError:
        # The base's own code broke its process, or there is no time left: nobody can tell.
        return {}
    if isinstance(answer, Failure):
        return {}
    return _requested_names(answer, wanted)


def _requested_names(
    answer: BaseTests, wanted: list[tuple[str, str]]
) -> dict[tuple[str | None, str], TestOnBase]:
    asked = {(path or None, name) for path, name in wanted}
    return {
        (outcome.path, outcome.name): outcome.result
        for outcome in answer.outcomes
        if (outcome.path, outcome.name) in asked
    }
