"""A doctor: ask the worker how everything is that the other activities need."""

from __future__ import annotations

import ci_bot
from ci_bot.bot.worker_client.client import WorkerClient, make_owner
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_FAILED
from ci_bot.protocol.base import Failure, Versions
from ci_bot.protocol.environment import DEFAULT_PREFIX
from ci_bot.protocol.messages import DoctorDocument, DoctorRequest
from ci_bot.protocol.plan import ProjectCheck


def request_doctor(
    client: WorkerClient, *, owner_name: str, environment_prefix: str = DEFAULT_PREFIX
) -> DoctorDocument:
    """What the worker found. A worker that does not even start is a finding, too.

    Raises:
        WorkerFailed: it gave no answer.
    """
    request = client.make_request(
        DoctorRequest, owner=make_owner(owner_name), environment_prefix=environment_prefix
    )
    answer = client.request_doctor(request)
    return answer if isinstance(answer, DoctorDocument) else make_failed_document(answer)


def make_failed_document(failure: Failure) -> DoctorDocument:
    """The document of a worker that could not look at anything."""
    check = ProjectCheck(
        name="worker",
        status="fail",
        message=failure.message[:4_000],
        fix=failure.hint[:4_000] if failure.hint else None,
    )
    return DoctorDocument(
        checks=[check],
        configured=failure.exit_code != EXIT_BAD_INPUT,
        seconds=0.0,
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
    )


def exit_code(document: DoctorDocument) -> int:
    """0 if nothing fails, 1 where something does, 2 where the configuration cannot be read."""
    if not document.configured:
        return EXIT_BAD_INPUT
    failing = any(check.status == "fail" for check in document.checks)
    return EXIT_FAILED if failing else EXIT_DONE
