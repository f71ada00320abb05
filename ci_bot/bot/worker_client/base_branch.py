"""What is known about the base branch: the base cache on disk, and which unit tests failed there.

A run on the default branch writes the cache. A workflow keeps the directory between runs
(`.github/examples/cleanup.yml`, `review.yml`). A review only reads the cache and puts its content
into the request. So the project's code sees a copy of its own, and nothing that a pull request
computed is written anywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from ci_bot.bot.sandbox import resolve_inside_checkout
from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.errors import BadInput, BotError
from ci_bot.protocol.base import Failure, Sha
from ci_bot.protocol.messages import BaseTestsRequest, Owner, RememberRequest
from ci_bot.protocol.plan import TestFailure, TestOnBase
from ci_bot.protocol.review_inputs import BaseCache, BaseTests, KnownFile, TestName
from ci_bot.protocol.review_report import ReviewFacts

MOST_BYTES = 64 * 1024 * 1024
_WHAT = "The directory of the cache"


def read_base_cache_for_worker(
    client: WorkerClient, directory: str, commit: Sha | None
) -> list[KnownFile]:
    """Reads what is known about files; empty if the cache is absent, cut, or not one of ours.

    Args:
        directory: The input `cache-dir`, in the checkout.
        commit: What is reviewed. If it contains the cache, its author made it, so it is not read.

    Raises:
        BadInput: the directory leaves the checkout.
    """
    file = _locate_base_cache_file(client, directory)
    if commit is not None and client.git.objects.has_path(
        commit, _make_relative_cache_path(client, file.parent)
    ):
        return []
    try:
        return BaseCache.model_validate_json(_read_cache_content(file)).files
    except (OSError, ValidationError):
        return []


def refresh_base_cache_by_worker(
    client: WorkerClient, directory: str, *, owner_name: str, run: str | None = None
) -> BaseCache | Failure:
    """Asks the worker what the checkout's files define, and writes it into the cache.

    Raises:
        BotError: the worker could not be asked, gave no answer, or the directory leaves the
            checkout or cannot be written.
    """
    file = _locate_base_cache_file(client, directory)
    request = client.make_request(RememberRequest, owner=Owner(name=owner_name, run=run))
    answer = client.request_base_cache(request)
    if isinstance(answer, BaseCache):
        _write_base_cache_whole(file, answer.to_json())
    return answer


def describe_base_cache_of_worker(document: BaseCache) -> str:
    """Describes what was written, for a log."""
    return (
        f"Base cache: {len(document.files):,} of {document.models:,} models are defined as in prod "
        "by a file that says so by itself; reviews need not parse those."
    )


def _locate_base_cache_file(client: WorkerClient, directory: str) -> Path:
    """Returns the cache's file; projects and gateways of one repository may share the directory."""
    named = json.dumps([client.projects, client.gateway]).encode()
    folder = resolve_inside_checkout(client.checkout, directory, what=_WHAT)
    if folder == Path(os.path.realpath(client.checkout)):
        raise BadInput(
            f"{_WHAT} is the checkout itself.",
            hint="Give `cache-dir` a directory of its own, `.ci-bot-cache` for example.",
            reason_code="bad_path",
        )
    return folder / f"base-{hashlib.sha256(named).hexdigest()[:16]}.json"


def _make_relative_cache_path(client: WorkerClient, path: Path) -> str:
    return path.relative_to(os.path.realpath(client.checkout)).as_posix()


def _read_cache_content(file: Path) -> bytes:
    """Reads the bytes of a plain file of a sensible size.

    Raises:
        OSError: it is not one.
    """
    reader = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(reader, "rb") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise OSError
        return opened.read(MOST_BYTES)


def _write_base_cache_whole(file: Path, text: str) -> None:
    """Writes the file whole or not at all, because a run may be stopped at any moment."""
    part = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise BadInput(
            f"{_WHAT} cannot be written: {error.strerror}.",
            hint="`cache-dir` names a directory in the checkout that this run may write.",
            reason_code="bad_path",
        ) from error


# Unit tests that fail: did they already fail on the base branch?


def compare_failed_tests_with_base_branch(
    client: WorkerClient, facts: ReviewFacts, base: str | None, owner: Owner
) -> ReviewFacts:
    """Returns the same facts; each failing unit test says how it ends on the base branch.

    This takes another run of the worker, only if a test fails. What the worker that loaded the pull
    request says about the base branch is not used.

    Args:
        base: The commit of the base branch; if it is None, the facts stay as they are.
    """
    tests = facts.checks.tests
    if not tests.failures:
        return facts
    before = _request_tests_on_base(client, tests.failures, base, owner)
    failures = [
        failure.model_copy(update={"on_base": before.get((failure.path, failure.name), "unknown")})
        for failure in tests.failures
    ]
    checks = facts.checks.model_copy(
        update={"tests": tests.model_copy(update={"failures": failures})}
    )
    return facts.model_copy(update={"checks": checks})


def _request_tests_on_base(
    client: WorkerClient, failures: Iterable[TestFailure], base: str | None, owner: Owner
) -> dict[tuple[str | None, str], TestOnBase]:
    wanted = sorted({(failure.path or "", failure.name) for failure in failures})
    try:
        if base is None or not client.git.has_commit(base):
            return {}
        projects = client.export_base(base)
        if not projects:
            return {}
        request = client.make_request(
            BaseTestsRequest,
            base_repository=client.base_directory,
            owner=owner,
            tests=[TestName(path=path or None, name=name) for path, name in wanted],
        ).model_copy(update={"projects": projects})
        answer = client.request_base_tests(request)
    except BotError:
        # The base branch's own code broke its process, or there is no time left: nobody knows.
        return {}
    if isinstance(answer, Failure):
        return {}
    return _match_requested_test_names(answer, wanted)


def _match_requested_test_names(
    answer: BaseTests, wanted: list[tuple[str, str]]
) -> dict[tuple[str | None, str], TestOnBase]:
    requested = {(path or None, name) for path, name in wanted}
    return {
        (outcome.path, outcome.name): outcome.result
        for outcome in answer.outcomes
        if (outcome.path, outcome.name) in requested
    }
