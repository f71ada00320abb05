"""`ci-bot sweep` at a terminal: the same sweep as in the workflow, without comments."""

from __future__ import annotations

from ci_bot.bot.comment.sweep_summary import render_sweep
from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.github.http.trust import trusted
from ci_bot.bot.github.laptop import api_url_of, repository_of, token_of
from ci_bot.bot.github.patience import time_for_github
from ci_bot.bot.terminal.local import context_of
from ci_bot.bot.terminal.local_client import local_client, local_prefix, origin_of
from ci_bot.bot.terminal.output.plain import plain
from ci_bot.bot.terminal.output.screen import screen_of
from ci_bot.bot.worker_calls.sweeping import sweep as sweeping
from ci_bot.bot.worker_calls.sweeping.rows import SweepOptions
from ci_bot.machine import Machine


def sweep_locally(
    machine: Machine,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment_prefix: str | None,
    dry_run: bool,
    max_deletions: int,
    python_path: tuple[str, ...],
    worker_env: str,
    timeout_minutes: int,
) -> int:
    """`ci-bot sweep`. Returns the exit code.

    Raises:
        BadInput: there is no token, or no repository to ask about; nothing was looked at.
    """
    token = token_of(machine.environ)
    with local_client(
        machine,
        projects,
        gateway,
        worker_env,
        python_path,
        timeout_minutes=timeout_minutes,
        secrets=(token,),
    ) as client:
        repository = repository_of(machine.environ, origin_of(client))
        github = GitHubClient(
            repository=repository,
            token=token,
            api_url=api_url_of(machine.environ),
            time=time_for_github(machine, client.deadline),
            trust=trusted(machine.environ),
        )
        swept = sweeping.sweep(
            client,
            SweepOptions(
                owner=repository,
                environment_prefix=local_prefix(client, machine, environment_prefix),
                max_deletions=max_deletions,
                dry_run=dry_run,
            ),
            github.pull_states,
        )
        report = client.redactor.document(swept.report())
        summary = render_sweep(report, context_of(machine, client, environment=""))
    screen = screen_of(machine)
    text = plain(summary, colour=screen.colour, width=screen.width)
    print(text, file=machine.out, flush=True)
    return sweeping.exit_code(swept)
