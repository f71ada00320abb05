"""What building the pull request's environment will cost, told in a comment. Nothing is built.

It loads the pull request beside the credentials of an apply, because Spark has to be asked, so it
asks of the pull request and of the person what an acceptance does.
"""

from __future__ import annotations

from ci_bot.bot.comment import reply
from ci_bot.bot.github.port import GitHub
from ci_bot.bot.pull_request.estimating.results import conclude
from ci_bot.bot.pull_request.gate import check_met, unmet_to_load
from ci_bot.bot.pull_request.own_review import commits_of
from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.pull_request.request import read_command
from ci_bot.bot.pull_request.review import checked_out, flags_of
from ci_bot.bot.trigger import job
from ci_bot.bot.trigger.comment_command import EstimateCommand
from ci_bot.bot.trigger.inputs import Settings
from ci_bot.bot.worker_calls import estimate as estimating
from ci_bot.bot.worker_calls.client import WorkerClient, owner
from ci_bot.bot.worker_calls.failures import error_of
from ci_bot.bot.worker_calls.review.changed_files import changed_by
from ci_bot.bot.worker_calls.review.that_counts import agreed_on_cost
from ci_bot.contracts.base import Failure
from ci_bot.contracts.documents.plan_options import selects_by_git
from ci_bot.errors import EXIT_DONE, EXIT_FAILED


def estimate(
    activity: job.Estimate,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
    github: GitHub,
) -> int:
    """Checks who asks, asks the worker, and answers; the exit code, 1 where the limit is exceeded.

    Raises:
        BotError: nothing can be said, and the message says why.
    """
    pull = github.get_pull(activity.number, settle=True)
    by = activity.requested_by
    if activity.comment_id is not None:
        by, _ = read_command(activity.comment_id, activity.number, EstimateCommand, github)
    against = unmet_to_load(
        by, github.permission(by), pull, checked_out(client), what="an estimate"
    )
    check_met(against)
    marker, inputs = publisher.before(), settings.inputs
    window = marker.window if marker and marker.head == pull.head_sha else None
    commits, flags = commits_of(pull, client), flags_of(inputs)
    changed = changed_by(client.git, commits) if selects_by_git(flags) else None
    limit, price = agreed_on_cost(
        client,
        commits,
        hours=inputs.max_executor_hours,
        price=inputs.executor_hour_price,
        today=publisher.machine.today(),
    )
    document = estimating.estimate(
        client,
        environment=publisher.template.environment,
        owner=owner(settings.runner.repository, number=pull.number, head_sha=pull.head_sha),
        window=window,
        start=inputs.start,
        end=inputs.end,
        flags=flags,
        head_branch=commits.head_branch,
        base_names=commits.base_names(),
        changed_files=changed.paths if changed is not None else None,
        executor_hour_price=price,
    )
    if isinstance(document, Failure):
        raise error_of(document)
    above = reply.is_above(document, limit)
    publisher.try_note(reply.estimated(document, limit, publisher.template))
    code = EXIT_FAILED if above else EXIT_DONE
    reason = "over_budget" if above else "estimated"
    conclude(
        publisher,
        "estimate",
        "estimated",
        reason,
        code,
        plan_id=document.plan_id,
        cost=document.cost,
        after_merge=document.after_merge,
    )
    return code
