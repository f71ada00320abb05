"""A cleanup: ask the worker to remove an environment and to prove it."""

from __future__ import annotations

from typing import Any

import ci_bot
from ci_bot.bot.cage.run import WorkerCancelled
from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.failures import refused
from ci_bot.contracts.base import Failure, Versions
from ci_bot.contracts.documents.cleanup import CleanupDocument
from ci_bot.contracts.environment import UnfitName
from ci_bot.contracts.messages import CleanupRequest
from ci_bot.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_REFUSED


def cleanup(client: WorkerClient, **wanted: Any) -> CleanupDocument:
    """Cleans up, or says in the document why not; also where the run was cancelled meanwhile.

    Args:
        wanted: The fields of `CleanupRequest` that the client does not know by itself.

    Raises:
        BadInput: `environment_prefix` is none, or the request cannot be put to a worker.
        Cancelled: before the worker was started.
    """
    environment = wanted["environment"]
    try:
        request = client.request(CleanupRequest, **wanted)
    except UnfitName as error:
        return failed_document(refused(error, "cleanup"), environment=environment)
    try:
        answer = client.cleanup(request)
    except WorkerCancelled as error:
        return cancelled_document(error, environment=environment)
    if isinstance(answer, CleanupDocument):
        return answer
    return failed_document(answer, environment=environment)


def cancelled_document(error: WorkerCancelled, *, environment: str) -> CleanupDocument:
    """What a cancelled cleanup had done, as far as the worker could still say it."""
    document = error.answer
    if isinstance(document, CleanupDocument) and document.failure is None:
        return document  # it had ended when the signal came
    failure = Failure(
        stage="cleanup",
        reason_code=error.reason_code,
        exit_code=error.exit_code,
        message=error.message,
        hint="Run the cleanup again: it goes on from where this one was stopped.",
    )
    if isinstance(document, CleanupDocument):
        return document.model_copy(update={"result": "incomplete", "failure": failure})
    return failed_document(failure, environment=environment)


def failed_document(failure: Failure, *, environment: str) -> CleanupDocument:
    """The document of a cleanup that could not be done: what is there is unknown, so it is left."""
    return CleanupDocument(
        environment=environment,
        existed=True,
        result="refused" if failure.exit_code == EXIT_REFUSED else "incomplete",
        state_record_removed=False,
        seconds=0.0,
        versions=Versions(ci_bot=ci_bot.__version__, python="unknown"),
        failure=failure,
    )


def exit_code(document: CleanupDocument) -> int:
    """The exit code of a cleanup."""
    if document.result in ("removed", "nothing_to_do"):
        return EXIT_DONE
    return document.failure.exit_code if document.failure else EXIT_INCOMPLETE
