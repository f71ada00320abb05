"""What this run's environment is called: by the input, or by the base branch."""

from __future__ import annotations

from dataclasses import replace

from ci_bot.bot.pull_request.publisher import Publisher
from ci_bot.bot.pull_request.review import checked_out, commits_of
from ci_bot.bot.trigger import job
from ci_bot.bot.trigger.inputs import Settings
from ci_bot.bot.worker_calls.client import WorkerClient
from ci_bot.bot.worker_calls.prefix import prefix_of, told
from ci_bot.contracts.environment import EnvironmentName
from ci_bot.errors import BadInput

_OfAnEnvironment = job.Review | job.Apply | job.Estimate | job.Accept | job.Cleanup | job.Sweep


def named(
    chosen: _OfAnEnvironment,
    settings: Settings,
    publisher: Publisher,
    client: WorkerClient,
) -> Settings:
    """The settings with the prefix that holds; the publisher speaks of that environment then.

    Raises:
        BadInput: the base branch says it, and its commit is not in the checkout.
    """
    if settings.inputs.environment_prefix is not None:
        return settings
    found = prefix_of(client, _base(chosen, client))
    warning = told(found)
    if warning is not None:
        publisher.commands.warning(warning)
    if found.prefix is None:
        return settings
    settings = replace(settings, prefix=found.prefix)
    publisher.settings = settings
    publisher.template = replace(
        publisher.template, environment=EnvironmentName.of(found.prefix, publisher.number or 0)
    )
    return settings


def _base(chosen: _OfAnEnvironment, client: WorkerClient) -> str | None:
    """The base branch's commit in the checkout, None where there is none.

    A cleanup and a sweep have the default branch checked out, unless a `pull_request` event has
    started the cleanup: that is on the merge commit still.
    """
    if isinstance(chosen, job.Review) and not chosen.dispatched:
        return commits_of(chosen, None, client).base
    try:
        head, parents = client.git.head(), checked_out(client)
    except BadInput:
        return None
    if isinstance(chosen, job.Review | job.Apply | job.Estimate | job.Accept):
        return parents[0] if parents else None
    merged_here = len(parents) > 1 and parents[1] == getattr(chosen, "head_sha", None)
    return parents[0] if merged_here and client.git.has(parents[0]) else head
