"""Ask the worker what building a plan will cost, with Spark awake."""

from __future__ import annotations

from typing import Any

from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.failures import refused
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.apply import EstimateDocument
from ci_bot.contracts.environment import UnfitName
from ci_bot.contracts.messages import EstimateRequest


def estimate(client: WorkerClient, **wanted: Any) -> EstimateDocument | Failure:
    """The expected cost, or why there is none.

    Args:
        wanted: The fields of `EstimateRequest` that the client does not know by itself.

    Raises:
        BotError: the worker could not be asked, or gave no answer.
    """
    try:
        request = client.request(EstimateRequest, **wanted)
    except UnfitName as error:
        return refused(error, "estimate")
    return client.estimate(request)
