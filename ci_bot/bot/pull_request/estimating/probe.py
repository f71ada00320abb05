"""What becomes of a probe of the reviewed plan: an answer of its own, as an estimate gives one.

The comment goes on to show the review: there is no environment yet that it could show.
"""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.bot.comment import reply
from ci_bot.bot.pull_request.estimating.results import conclude, give_up
from ci_bot.bot.pull_request.gate import Unmet, check_met
from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.pull_request.request import answer_refused
from ci_bot.bot.worker_calls import apply as applying
from ci_bot.bot.worker_calls.failures import error_of
from ci_bot.contracts.documents.apply import ApplyDocument
from ci_bot.errors import EXIT_FAILED, Refused


def publish(document: ApplyDocument, publisher: Publisher, limit: float | None) -> int:
    """Answers with the figures, or with why there are none; the exit code.

    Args:
        limit: The most executor-hours that the plan, and prod's after the merge, may take. What is
            above it is exit 1, as of an estimate.
    """
    failure, code = document.failure, applying.exit_code(document)
    if failure is not None:
        left = " ".join([failure.message, *document.partial])
        error = error_of(failure.model_copy(update={"message": left}))
        if document.reason_code == "cancelled":
            # GitHub kills the run in seconds; an answer would take them from the outputs.
            publisher.commands.error(left)
        else:
            answer_refused(error, "probe", publisher)
        _conclude(document, failure.reason_code, code, publisher)
        return code
    above = reply.is_above(document, limit)
    publisher.try_note(reply.probed(document, limit, publisher.template))
    code = EXIT_FAILED if above else code
    reason = "over_budget" if above else document.reason_code or document.result
    _conclude(document, reason, code, publisher)
    return code


def refuse(against: Sequence[Unmet], publisher: Publisher) -> int:
    """Answers what stands against it. Nothing is touched."""
    try:
        check_met(against)
    except Refused as error:
        return give_up(error, "probe", publisher)
    raise AssertionError("nothing stands against it")


def _conclude(document: ApplyDocument, reason: str, code: int, publisher: Publisher) -> None:
    conclude(
        publisher,
        "probe",
        document.result,
        reason,
        code,
        plan_id=document.plan_id,
        cost=document.estimate,
        after_merge=document.prod_estimate,
    )
