"""What the bot may ask of GitHub, as a Protocol, and the records that cross it.

Errors that every verb may raise: `GitHubUnavailable` (no answer within the budget, or a rate
limit), `Refused` (a permission is missing; the message names it), `NotFound`, `BadInput` (the
token is not accepted, or a setting keeps GitHub out of reach) and `Rejected` (GitHub does not take
the content).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ci_bot.bot.actions import DEPENDABOT
from ci_bot.errors import BadInput, BotError

if TYPE_CHECKING:
    from ci_bot.bot.report import CheckRun
    from ci_bot.protocol.base import Sha

PER_PAGE = 100  # of every list; the most that GitHub gives

Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]

Reaction = Literal["eyes", "rocket", "-1", "+1", "confused"]

State = Literal["open", "closed", "unknown"]

_WRITERS: frozenset[Permission] = frozenset({"admin", "maintain", "write"})
_MAINTAINERS: frozenset[Permission] = frozenset({"admin", "maintain"})


class NotFound(BadInput):
    """GitHub knows no such thing, or the token may not see it."""

    reason_code = "not_found"


class RejectedContent(BotError):
    """GitHub understood the request and does not take its content; `said` is why, in its words."""

    reason_code = "github_rejected"

    def __init__(self, message: str, *, hint: str, said: str) -> None:
        super().__init__(message, hint=hint)
        self.said = said


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request as it is now.

    `mergeable` is None while GitHub has not worked it out. `merge_sha` is the test merge commit of
    an open pull request, or the commit that a merge made. `association` is what GitHub calls its
    author's relation to the repository, in capitals.
    """

    number: int
    open: bool
    merged: bool
    draft: bool
    mergeable: bool | None
    head_sha: Sha
    head_ref: str
    head_repository: str | None
    base_sha: Sha
    base_ref: str
    merge_sha: Sha | None
    author: str
    fork: bool
    url: str
    default_branch: str | None = None
    association: str | None = None

    @property
    def is_dependabot(self) -> bool:
        """Whether Dependabot opened it."""
        return self.author == DEPENDABOT


@dataclass(frozen=True, kw_only=True)
class PullCommit:
    """A commit of a pull request, as GitHub sees it.

    The logins are None if an address belongs to no account. `verified` is whether GitHub has
    checked its signature against the committer.
    """

    sha: Sha
    author: str | None
    committer: str | None
    verified: bool


@dataclass(frozen=True, kw_only=True)
class RepositoryIssue:
    """An issue that is no pull request."""

    number: int
    is_open: bool
    title: str
    body: str
    author: str
    url: str


@dataclass(frozen=True, kw_only=True)
class PullState:
    """Whether a pull request is open; `merged` is None if that was not asked."""

    state: State
    merged: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PullComment:
    """A comment of a pull request's conversation. Times are GitHub's, ISO 8601 in UTC."""

    id: int
    number: int | None
    body: str
    author: str
    created_at: str
    updated_at: str
    url: str
    minimized: bool = False
    node_id: str = ""

    @property
    def was_edited(self) -> bool:
        """Whether its text was changed after it was written."""
        return self.updated_at != self.created_at


def may_write_on_github(permission: Permission) -> bool:
    """Whether this permission is enough to ask for a plan, an apply or a cleanup."""
    return permission in _WRITERS


def may_maintain_on_github(permission: Permission) -> bool:
    """Whether this permission is enough to override a No-Go."""
    return permission in _MAINTAINERS


def require_github(github: GitHub | None) -> GitHub:
    """`github`, for what must not be done without asking it.

    Raises:
        BadInput: the run has no token.
    """
    if github is None:
        raise BadInput(
            "This activity needs a token, and the input `github-token` is empty.",
            hint="Leave the input out: the default is the workflow's own token.",
            reason_code="missing_token",
        )
    return github


class GitHub(Protocol):
    """One repository on GitHub."""

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        """Inside, for what can be left out: no wait for GitHub that is longer is begun."""

    def get_pull(self, number: int, *, settle: bool = False) -> PullRequest:
        """A pull request; with `settle` a few more tries until `mergeable` is known."""

    def pulls_for_sha(self, sha: Sha, *, head: str | None = None) -> list[PullRequest]:
        """Open pull requests whose head is exactly `sha`; `head` is `owner:branch`, if known."""

    def pull_states(self, numbers: Collection[int]) -> dict[int, PullState]:
        """For each number whether it is open, in a handful of requests for all of them together.

        `unknown` is an answer: whoever asks in order to remove something leaves those alone.
        """

    def changed_files(self, number: int) -> list[str] | None:
        """Paths that the pull request touches, old names too; None where GitHub lists no more."""

    def list_pull_commits(self, number: int) -> list[PullCommit] | None:
        """The commits since its base, oldest first; None where GitHub lists no more."""

    def list_comments(self, number: int, *, first_page: int = 1) -> Iterator[PullComment]:
        """The comments of a pull request, oldest first, over all pages."""

    def get_comment(self, comment_id: int) -> PullComment:
        """One comment, whichever issue or pull request of the repository it is on."""

    def create_comment(
        self, number: int, body: str, *, is_it: Callable[[PullComment], bool] | None = None
    ) -> PullComment:
        """A new comment, exactly one.

        Where GitHub fails without saying whether it took the comment, the comments are read again
        and `is_it` recognises ours (by default: the same text).
        """

    def update_comment(self, comment_id: int, body: str) -> PullComment:
        """Replace the whole body of a comment."""

    def fold_comment(self, comment: PullComment) -> None:
        """Minimize a comment as outdated: it stays, and is shown when somebody opens it."""

    def delete_comment(self, comment_id: int) -> None:
        """Remove a comment; one that is gone already is a success."""

    def write_check(self, check: CheckRun) -> None:
        """A check that has ended, with all of its annotations.

        Of several of one name at one commit the newest is what GitHub shows and what branch rules
        count, so a later one takes the place of this one.
        """

    def list_issues(self, label: str) -> list[RepositoryIssue]:
        """The issues with a label, open and closed; pull requests are left out."""

    def create_issue(self, title: str, body: str, *, labels: Sequence[str]) -> RepositoryIssue:
        """A new issue. A label that the repository lacks is made."""

    def update_issue(self, number: int, *, title: str, body: str, is_open: bool) -> RepositoryIssue:
        """Replace title and body of an issue, and close it or open it again."""

    def my_login(self) -> str:
        """The login that this token writes comments as. At most one request, then remembered."""

    def get_permission(self, login: str) -> Permission:
        """What a person may do in this repository."""

    def in_team(self, team: str, login: str) -> bool:
        """Whether a person is in a team (`organization/team`), as far as the token may see it."""

    def list_required_checks(self, branch: str) -> list[str]:
        """The checks that rulesets require of a branch. Older protection rules are not among
        them: only administrators may read those."""

    def add_reaction(self, comment_id: int, content: Reaction) -> None:
        """React to a comment; the same reaction twice is one."""

    def dispatch_workflow(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        """Start a workflow (its file name) by `workflow_dispatch`."""

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        """The zip file of a workflow run's artifact, at most `max_bytes` of it."""


# Which of many pull requests are open, in a handful of requests. Pure but for its two arguments.
#
# Asking for each of 200 numbers would take 200 requests. The list of open pull requests decides
# them all at once: a number that is not on it is closed. That holds while the list is one page.
# Over several pages a pull request that closes in between moves its successors one place forward,
# and one of them can slip from the second page onto the first after that was read. Whoever removes
# an environment by such a list would remove a live one. So with several pages a number counts as
# closed only where GitHub said so itself, and what was not seen within the requests allowed is
# `unknown`: left alone today, asked about again tomorrow.


MOST_REQUESTS = 5
_MOST_OPEN_PAGES = 50

PullPage = Callable[[Mapping[str, str | int]], tuple[list[PullRequest], bool]]


def poll_states_of_github_pulls(
    numbers: Collection[int], page: PullPage, get_pull: Callable[[int], PullRequest]
) -> dict[int, PullState]:
    """The state of each number, with at most `MOST_REQUESTS` requests where 300 or fewer are open.

    In a repository with more, it is the pages of the open ones and two.

    Args:
        numbers: The pull requests to ask about.
        page: One page of the list of pull requests for a query, and whether there is a next one.
        get_pull: One pull request.
    """
    if not numbers:
        return {}
    spent, is_open = _list_open_github_pulls(page)
    states = {
        number: PullState(state="open", merged=False) for number in numbers if number in is_open
    }
    if spent == 1:
        states |= {n: PullState(state="closed") for n in numbers if n not in is_open}
    undecided = {number for number in numbers if _is_state_unsure(states.get(number))}
    turn, more, limit = 1, True, max(MOST_REQUESTS, spent + 2)
    while undecided and more and spent < limit:
        # Whatever closed lately comes first, and that is what a nightly sweep looks for.
        query = {"state": "closed", "sort": "updated", "direction": "desc"}
        closed, more = page({**query, "per_page": PER_PAGE, "page": turn})
        states |= {
            pull.number: PullState(state="closed", merged=pull.merged)
            for pull in closed
            if pull.number in undecided and not pull.open
        }
        undecided -= {pull.number for pull in closed}
        turn, spent = turn + 1, spent + 1
    for number in sorted(undecided):
        if spent >= limit:
            break
        states[number] = _poll_pull_state(number, get_pull)
        spent += 1
    return {number: states.get(number, PullState(state="unknown")) for number in numbers}


def _list_open_github_pulls(page: PullPage) -> tuple[int, set[int]]:
    """How many pages the list of open pull requests has, and the numbers on it."""
    numbers: set[int] = set()
    for turn in range(1, _MOST_OPEN_PAGES + 1):
        query = {"state": "open", "sort": "created", "direction": "asc"}
        pulls, more = page({**query, "per_page": PER_PAGE, "page": turn})
        numbers |= {pull.number for pull in pulls}
        if not more:
            return turn, numbers
    return _MOST_OPEN_PAGES, numbers


def _is_state_unsure(state: PullState | None) -> bool:
    return state is None or (state.state == "closed" and state.merged is None)


def _poll_pull_state(number: int, get_pull: Callable[[int], PullRequest]) -> PullState:
    try:
        pull = get_pull(number)
    except NotFound:
        return PullState(state="unknown")
    return PullState(state="open" if pull.open else "closed", merged=pull.merged)
