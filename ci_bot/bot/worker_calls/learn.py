"""Ask the worker what prod's own runs have cost, as Spark's event logs tell it."""

from __future__ import annotations

from ci_bot.bot.worker_calls.client import WorkerClient, owner
from ci_bot.contracts.base import Failure
from ci_bot.contracts.cost.learned import LearnDocument
from ci_bot.contracts.messages import LearnRequest


def learn(
    client: WorkerClient, *, owner_name: str, event_logs: str, run: str | None = None
) -> LearnDocument | Failure:
    """What became of the logs in the directory.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    request = client.request(LearnRequest, owner=owner(owner_name, run=run), event_logs=event_logs)
    return client.learn(request)


def sentence(document: LearnDocument) -> str:
    """What was learned, with what was of no use."""
    useless = {
        "of other applications": document.foreign,
        "of another version of Spark": document.other_version,
        "not readable": document.unreadable,
        "cut": document.cut,
    }
    left = ", ".join(f"{count:,} {what}" for what, count in useless.items() if count)
    return (
        f"Event logs: {document.read:,} of {document.logs:,} were new and tell of "
        f"{document.writes:,} writes into {document.tables:,} tables"
        + (f" ({left})." if left else ".")
    )
