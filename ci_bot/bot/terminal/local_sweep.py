"""`ci-bot sweep` at a terminal: the same sweep as in the workflow, without comments."""

from __future__ import annotations

from ci_bot.bot.comment.sweep_summary import sweep_to_terminal
from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.github.http.trust import trusted
from ci_bot.bot.github.laptop import api_url_of, repository_of, token_of
from ci_bot.bot.github.patience import time_for_github
from ci_bot.bot.terminal.local import local_bench, origin_of
from ci_bot.bot.worker_calls import sweep as sweeping
from ci_bot.bot.worker_calls.sweep_rows import SweepOptions
from ci_bot.machine import Surroundings


def sweep_locally(
    around: Surroundings,
    *,
    projects: tuple[str, ...],
    gateway: str | None,
    environment_prefix: str,
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
    token = token_of(around.environ)
    with local_bench(
        around,
        projects,
        gateway,
        worker_env,
        python_path,
        timeout_minutes=timeout_minutes,
        secrets=(token,),
    ) as bench:
        repository = repository_of(around.environ, origin_of(bench))
        github = GitHubClient(
            repository=repository,
            token=token,
            api_url=api_url_of(around.environ),
            time=time_for_github(around, bench.deadline),
            trust=trusted(around.environ),
        )
        swept = sweeping.sweep(
            bench,
            SweepOptions(
                owner=repository,
                environment_prefix=environment_prefix,
                max_deletions=max_deletions,
                dry_run=dry_run,
            ),
            github.pull_states,
        )
        report = bench.redactor.document(swept.report())
        text = sweep_to_terminal(report, colour=around.out.isatty())
    print(text, file=around.out, flush=True)
    return sweeping.exit_code(swept)
