"""What a run for a pull request needs first: the command, commits, authors, environment's name.

The comment with the command is read again, because what was dispatched may not be what was written.
If the command fails, the comment gets an answer.

GitHub itself says who wrote the pull request, and the policy's `trust` has to cover them all. The
name in a commit is typed by its author, so GitHub has to have verified each commit, and its author
and committer have to be accounts that may write now. What is not known is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ci_bot.bot.actions import (
    AcceptCommand,
    ActionSettings,
    ApplyCommand,
    CleanupCommand,
    EstimateCommand,
    RestateCommand,
    activities,
    parse_comment_command,
)
from ci_bot.bot.github import GitHub, PullCommit, PullRequest, may_write_on_github
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.policy import ChangeAuthors
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import (
    RequestedReviewCommits,
    WorkerClient,
    describe_prefix_ignored_by_client,
    make_activity_failure_of_worker,
    read_environment_prefix_for_worker,
)
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import Owner

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


# GitHub's own committer for changes on its pages; only GitHub can sign for it:
# https://docs.github.com/en/authentication/managing-commit-signature-verification/about-commit-signature-verification
_GITHUB_ITSELF = "web-flow"
# Relations of people who have contributed here or were invited. The other relations are those of a
# first pull request: https://docs.github.com/en/graphql/reference/enums#commentauthorassociation
_KNOWN_HERE = frozenset({"OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"})
# Each person is a request, and a review waits for them.
_MOST_PEOPLE = 20
_MOST_SECONDS = 20.0


def make_change_author_finder(
    github: GitHub | None, number: int | None, head: Sha | None
) -> Callable[[], ChangeAuthors] | None:
    """Makes a function that asks GitHub who wrote the commits up to `head`; None if it cannot."""
    if github is None or number is None or head is None:
        return None
    return partial(find_change_authors, github, number, head)


def find_change_authors(github: GitHub, number: int, head: Sha) -> ChangeAuthors:
    """Finds the authors of a pull request, or why they are not all trusted; raises nothing."""
    try:
        with github.limit_waits(_MOST_SECONDS):
            return _request_change_authors(github, number, head)
    except BotError as error:
        reason = f"GitHub did not say who wrote it ({error.message.rstrip('.')})"
        return ChangeAuthors(refused_because=reason)


def _request_change_authors(github: GitHub, number: int, head: Sha) -> ChangeAuthors:
    pull = github.get_pull(number)
    refused = _refuse_authors_of_pull(pull, head)
    if refused is not None:
        return ChangeAuthors(refused_because=refused)
    commits = github.list_pull_commits(number)
    if commits is None:
        return ChangeAuthors(refused_because="GitHub does not list all of its commits")
    names = {pull.author, *(name for one in commits for name in (one.author, one.committer))}
    people = sorted(name for name in names if name is not None and name != _GITHUB_ITSELF)
    refused = _refuse_authors_of_commits(commits, head) or _refuse_change_authors(people, github)
    if refused is not None:
        return ChangeAuthors(refused_because=refused)
    return ChangeAuthors(writers=tuple(people), commits=len(commits), refused_because=None)


def _refuse_change_authors(people: Sequence[str], github: GitHub) -> str | None:
    if len(people) > _MOST_PEOPLE:
        return f"{len(people)} people wrote it, and {_MOST_PEOPLE} are asked about at most"
    for login in people:
        if _is_author_a_program(login):
            return f"`{login}` wrote a part of it, and a program is not trusted"
        if not may_write_on_github(github.get_permission(login)):
            return f"`@{login}` wrote a part of it, and may not write to this repository"
    return None


def _refuse_authors_of_pull(pull: PullRequest, head: Sha) -> str | None:
    if pull.fork:
        return "it comes from a fork"
    if _is_author_a_program(pull.author):
        return f"`{pull.author}` opened it, and a program is not trusted"
    if pull.association not in _KNOWN_HERE:
        return f"it is the first pull request of `@{pull.author}` here"
    if pull.default_branch is None or pull.base_ref != pull.default_branch:
        return "it is not to be merged into the default branch"
    if pull.head_sha != head:
        return (
            f"commit `{head[:7]}` is not its head: it was pushed to, or a merge queue has made it"
        )
    return None


def _refuse_authors_of_commits(commits: Sequence[PullCommit], head: Sha) -> str | None:
    if not commits or commits[-1].sha != head:
        return "GitHub lists other commits than those that are reviewed"
    for commit in commits:
        name = f"commit `{commit.sha[:7]}`"
        if not commit.verified:
            return f"GitHub has not verified {name}"
        if commit.author is None or commit.committer is None:
            return f"whoever wrote {name} is no account of GitHub"
    return None


def _is_author_a_program(login: str) -> bool:
    return login.endswith("[bot]")


ReadRequest = TypeVar(
    "ReadRequest", AcceptCommand, ApplyCommand, CleanupCommand, EstimateCommand, RestateCommand
)


def read_command_for_handler(
    comment_id: int, number: int, kind: type[ReadRequest], github: GitHub
) -> tuple[str, ReadRequest]:
    """Returns author and command of a comment. The author counts, not the account of this run.

    Raises:
        RequestRefused: it is on another pull request, was edited, or is no command of this kind.
    """
    comment = github.get_comment(comment_id)
    command = parse_comment_command(comment.body)
    if comment.number != number or comment.was_edited or not isinstance(command, kind):
        raise RequestRefused(
            f"Comment {comment_id} is not an unedited {kind.verb} command on pull "
            f"request #{number}.",
            hint="Write the command again, as a new comment.",
            reason_code="bad_comment",
        )
    return comment.author, command


def answer_refused_run(error: BotError, stage: str, publisher: HandlerPublisher) -> None:
    """Says in the log and in a note why nothing was done; the comment stays as it is."""
    failure = make_activity_failure_of_worker(error, stage, publisher.redactor)
    publisher.commands.annotate_error(f"{failure.message} {failure.hint or ''}".strip())
    publisher.try_note(
        notices.render_refused_comment(
            failure.reason_code, failure.message, failure.hint, publisher.template
        )
    )


def make_owner_of_run(settings: ActionSettings, number: int, head_sha: Sha | None) -> Owner:
    """Makes the owner in a request of this run: the pull request, and the run itself."""
    return Owner(
        name=settings.runner.repository,
        pr_number=number,
        head_sha=head_sha,
        run=str(settings.runner.run_id),
    )


def find_checked_out_commit(client: WorkerClient) -> tuple[str, ...]:
    """Returns base and head, if the workspace holds a test merge commit."""
    return tuple(client.git.list_parents(client.git.read_head()))


def find_commits_of_run_event(
    activity: activities.Review, pull: PullRequest | None, client: WorkerClient
) -> RequestedReviewCommits:
    """Finds head, base and merge commit; the base is the merge commit's own first parent."""
    head = activity.head_sha or (pull.head_sha if pull else None)
    base = activity.base_sha or (pull.base_sha if pull else None)
    merge = activity.merge_sha or (pull.merge_sha if pull else None)
    if merge is not None and client.git.has_commit(merge):
        parents = client.git.list_parents(merge)
        base = parents[0] if parents else base
    return RequestedReviewCommits(
        head=head,
        base=base,
        merge=merge,
        head_branch=activity.head_ref or (pull.head_ref if pull else None),
        base_branch=activity.base_ref or (pull.base_ref if pull else None),
    )


# The name of this run's environment: by the input, or by the base branch.


def name_environment_of_run(
    chosen: activities.Activity,
    settings: ActionSettings,
    publisher: HandlerPublisher,
    client: WorkerClient,
) -> ActionSettings:
    """Returns the settings with the current prefix; gives the publisher that environment's name.

    Raises:
        BadInput: the base branch sets the name, and its commit is not in the checkout.
    """
    if settings.inputs.environment_prefix is not None:
        return settings
    found = read_environment_prefix_for_worker(client, _find_base_commit(chosen, client))
    warning = describe_prefix_ignored_by_client(found)
    if warning is not None:
        publisher.commands.annotate_warning(warning)
    if found.prefix is None:
        return settings
    settings = replace(settings, prefix=found.prefix)
    publisher.settings = settings
    publisher.template = replace(
        publisher.template,
        environment=EnvironmentName.for_pull_request(found.prefix, publisher.number or 0),
    )
    return settings


def _find_base_commit(chosen: activities.Activity, client: WorkerClient) -> str | None:
    """Finds the base branch's commit in the checkout; None if there is none.

    A cleanup and a sweep have the default branch checked out. But if a `pull_request` event started
    the cleanup, its checkout is still the merge commit.
    """
    if isinstance(chosen, activities.Review) and not chosen.was_dispatched:
        return find_commits_of_run_event(chosen, None, client).base
    try:
        head, parents = client.git.read_head(), find_checked_out_commit(client)
    except BadInput:
        return None
    if isinstance(
        chosen,
        activities.Review
        | activities.Apply
        | activities.Estimate
        | activities.Accept
        | activities.Restate,
    ):
        return parents[0] if parents else None
    merged_here = len(parents) > 1 and parents[1] == getattr(chosen, "head_sha", None)
    return parents[0] if merged_here and client.git.has_commit(parents[0]) else head
