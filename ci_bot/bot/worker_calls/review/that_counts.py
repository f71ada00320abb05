"""Which policy counts for what is asked, and what it says of costs."""

from __future__ import annotations

from datetime import date

from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.review.review_options import Commits
from ci_bot.bot.worker_calls.review.team_policy import TeamPolicy, of_base, of_working_tree
from ci_bot.contracts.cost.figures import Price


def policy_that_counts(
    client: WorkerClient,
    commits: Commits,
    *,
    new: str | None,
    no_lighter: str | None = None,
    today: date,
) -> TeamPolicy:
    """The policy of the base commit; on a laptop that names none, the one that lies there.

    Args:
        new: The commit that the pull request makes of it; None: nobody has looked at its changes.
        no_lighter: See `TeamPolicy`.

    Raises:
        UnfitPolicy: it cannot be used.
    """
    if commits.base is not None and client.git.has(commits.base):
        return of_base(
            client.git,
            client.projects,
            base=commits.base,
            new=new,
            today=today,
            no_lighter=no_lighter,
        )
    if commits.base is None and client.own_machine:
        return of_working_tree(client.checkout, client.projects, today=today)
    return TeamPolicy(today=today)


def agreed_on_cost(
    client: WorkerClient,
    commits: Commits,
    *,
    hours: float | None,
    price: Price | None,
    today: date,
) -> tuple[float | None, Price | None]:
    """The most executor-hours, and what one of them costs: as given, else as the policy says.

    Raises:
        UnfitPolicy: the policy cannot be used.
    """
    if hours is not None and price is not None:
        return hours, price
    policy = policy_that_counts(client, commits, new=commits.new, today=today).policy
    return (
        policy.limits.max_executor_hours if hours is None else hours,
        policy.executor_hour_price if price is None else price,
    )
