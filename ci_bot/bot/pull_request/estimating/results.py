"""How an answer with figures ends: the outputs of the step and its summary."""

from __future__ import annotations

from typing import Literal

from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.pull_request.request import answer_refused
from ci_bot.contracts.documents.plan import Cost
from ci_bot.errors import BotError

_Activity = Literal["estimate", "probe"]


def give_up(error: BotError, activity: _Activity, publisher: Publisher) -> int:
    """Answers a request that came to nothing; the comment stays as it is. The exit code."""
    answer_refused(error, activity, publisher)
    conclude(publisher, activity, "refused", error.reason_code, error.exit_code)
    return error.exit_code


def conclude(
    publisher: Publisher,
    activity: _Activity,
    result: str,
    reason: str,
    code: int,
    *,
    plan_id: str | None = None,
    cost: Cost | None = None,
    after_merge: Cost | None = None,
) -> None:
    """Writes the outputs.

    Args:
        cost: Of the environment, where it is known; `after_merge`: of prod.
    """
    publisher.result(
        {"reason-code": reason, "plan-id": plan_id or ""},
        {
            "activity": activity,
            "result": result,
            "reason_code": reason,
            "executor_hours": cost.executor_hours_mid if cost else None,
            "prod_executor_hours": after_merge.executor_hours_mid if after_merge else None,
            "exit_code": code,
        },
    )
