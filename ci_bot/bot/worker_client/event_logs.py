"""Asks the worker for facts of Spark's event logs: the cost of prod's runs, and its readers."""

from __future__ import annotations

from ci_bot.bot.worker_client.client import WorkerClient, make_owner
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument
from ci_bot.protocol.messages import ExposuresRequest, LearnRequest

OTHER_SPARK = "of another version of Spark"


def request_learn(
    client: WorkerClient, *, owner_name: str, event_logs: str, run: str | None = None
) -> LearnDocument | Failure:
    """What became of the logs in the directory.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    request = client.make_request(
        LearnRequest, owner=make_owner(owner_name, run=run), event_logs=event_logs
    )
    return client.request_learn(request)


def request_exposures(
    client: WorkerClient, *, owner_name: str, event_logs: str
) -> ExposuresDocument | Failure:
    """Who has read prod's tables, by the logs in the directory.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    request = client.make_request(
        ExposuresRequest, owner=make_owner(owner_name), event_logs=event_logs
    )
    return client.request_exposures(request)


def describe_learned(document: LearnDocument) -> str:
    """What was learned, with what was of no use."""
    useless = {
        "of other applications": document.foreign,
        OTHER_SPARK: document.other_version,
        "not readable": document.unreadable,
        "cut": document.cut,
    }
    left = ", ".join(f"{count:,} {what}" for what, count in useless.items() if count)
    return (
        f"Event logs: {document.read:,} of {document.logs:,} were new and tell of "
        f"{document.writes:,} writes into {document.tables:,} tables"
        + (f" ({left})." if left else ".")
    )
