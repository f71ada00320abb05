"""An owner's acceptance is written into the ledger, where no pull request's review can write."""

from __future__ import annotations

from collections.abc import Callable

from ci_bot.contracts.messages import AcceptAnswer, AcceptRequest
from ci_bot.worker import compat
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project import opening
from ci_bot.worker.project.directories import place_of
from ci_bot.worker.records.ledger import Ledger
from ci_bot.worker.records.ledger_schema import KEEP_DAYS
from ci_bot.worker.words import times


def accept(
    request: AcceptRequest, clock: Clock, on_spark_start: Callable[[], None]
) -> AcceptAnswer:
    """Writes it. Only the configuration is read for it, and no model.

    Raises:
        BadInput: the configuration is broken, or there is no state yet.
    """
    place = place_of(request, request.projects)
    with opening.state_to_write(place, on_spark_start, clock) as context:
        ledger = Ledger(compat.state_adapter(context))
        ledger.prepare()
        number = request.owner.pr_number or 0
        oldest = times.milliseconds(request.acceptance.at) - KEEP_DAYS * 86_400_000
        ledger.accept(
            request.owner.name, number, request.acceptance, forget_before=times.iso(oldest)
        )
        return AcceptAnswer(acceptances=ledger.acceptances(request.owner.name, number))
