"""`ci-bot estimate` at a terminal: what building the plan will cost, with Spark awake."""

from __future__ import annotations

from typing import Literal

from ci_bot.bot.comment import reply
from ci_bot.bot.terminal.local import context_of
from ci_bot.bot.terminal.local_client import (
    branch_of,
    check_name,
    local_client,
    origin_of,
)
from ci_bot.bot.terminal.output.plain import plain
from ci_bot.bot.terminal.output.screen import screen_of
from ci_bot.bot.worker_calls.client import owner, run_owner
from ci_bot.bot.worker_calls.estimate import estimate
from ci_bot.bot.worker_calls.failures import error_of
from ci_bot.bot.worker_calls.review.review_options import Commits
from ci_bot.bot.worker_calls.review.that_counts import agreed_on_cost
from ci_bot.contracts.base import Failure
from ci_bot.contracts.cost.figures import Price
from ci_bot.contracts.documents.plan_options import GivenFlags
from ci_bot.contracts.environment import for_review
from ci_bot.errors import EXIT_DONE, EXIT_FAILED
from ci_bot.machine import Machine


def estimate_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment: str,
    flags: GivenFlags,
    start: str | None,
    end: str | None,
    max_executor_hours: float | None,
    executor_hour_price: Price | None,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
    form: Literal["terminal", "json"],
) -> int:
    """`ci-bot estimate`. Returns the exit code: 1 where the limit does not hold, which an option
    says, or else the policy.

    Raises:
        BotError: the project cannot be planned, or Spark does not start.
    """
    with local_client(
        machine, projects, gateway, worker_env, python_path, timeout_minutes=timeout_minutes
    ) as client:
        check_name(environment, for_review)
        limit, price = agreed_on_cost(
            client,
            Commits(),
            hours=max_executor_hours,
            price=executor_hour_price,
            today=machine.today(),
        )
        document = estimate(
            client,
            environment=environment,
            owner=owner(run_owner(None, origin_of(client))),
            flags=flags,
            start=start,
            end=end,
            head_branch=branch_of(client),
            executor_hour_price=price,
        )
        if isinstance(document, Failure):
            raise error_of(document)
        context = context_of(machine, client, document.environment)
    screen = screen_of(machine)
    text = (
        document.to_json(indent=2)
        if form == "json"
        else plain(
            reply.estimated(document, limit, context),
            colour=screen.colour,
            width=screen.width,
        )
    )
    print(text, file=machine.out, flush=True)
    return EXIT_FAILED if reply.is_above(document, limit) else EXIT_DONE
