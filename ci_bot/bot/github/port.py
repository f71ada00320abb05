"""What the bot may ask GitHub, as a Protocol, and the records that it gets and gives.

Errors that every verb may raise: `GitHubUnavailable` (no answer within the budget, or a rate
limit), `RequestRefused` (a permission is missing; the message names it), `NotFound`, `BadInput`
(the token is not accepted, or a setting keeps GitHub out of reach) and `RejectedContent` (GitHub
does not accept the content).
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

PER_PAGE = 100  # entries in a page of every list; GitHub gives no more

Permission = Literal["admin", "maintain", "write", "triage", "read", "none"]

Reaction = Literal["eyes", "rocket", "-1", "+1", "confused"]

State = Literal["open", "closed", "unknown"]

_WRITERS: frozenset[Permission] = frozenset({"admin", "maintain", "write"})
_MAINTAINERS: frozenset[Permission] = frozenset({"admin", "maintain"})


class NotFound(BadInput):
    """The error if GitHub knows no such thing, or the token may not see it."""

    reason_code = "not_found"


class RejectedContent(BotError):
    """The error if GitHub does not accept the content of a request; `said` is GitHub's reason."""

    reason_code = "github_rejected"

    def __init__(self, message: str, *, hint: str, said: str) -> None:
        super().__init__(message, hint=hint)
        self.said = said


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    """A pull request in its current state.

    `mergeable` is None until GitHub has computed it. `merge_sha` is the test merge commit of an
    open pull request, or the commit that a merge made. `association` is GitHub's word, in capitals,
    for its author's relation to the repository.
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
    verified the signature of the committer.
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
    """The state of a pull request; `merged` is None if it is not known."""

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
        """Whether its text was changed later."""
        return self.updated_at != self.created_at


def may_write_on_github(permission: Permission) -> bool:
    """Whether this permission is enough to ask for a plan, an apply or a cleanup."""
    return permission in _WRITERS


def may_maintain_on_github(permission: Permission) -> bool:
    """Whether this permission is enough to override a No-Go."""
    return permission in _MAINTAINERS


def require_github(github: GitHub | None) -> GitHub:
    """Returns `github`, for work that must not be done without it.

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
    """One repository on GitHub, as the bot uses it."""

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        """Limits each wait inside to `seconds`, for requests whose result can be left out."""

    def get_pull(self, number: int, *, settle: bool = False) -> PullRequest:
        """Returns a pull request; with `settle` it tries a few times until `mergeable` is known."""

    def pulls_for_sha(self, sha: Sha, *, head: str | None = None) -> list[PullRequest]:
        """Lists open pull requests whose head is `sha`; `head` is `owner:branch`, if known."""

    def pull_states(self, numbers: Collection[int]) -> dict[int, PullState]:
        """Returns the state of each number, with a handful of requests for all together.

        `unknown` is an answer, too: a caller that removes things leaves those alone.
        """

    def changed_files(self, number: int) -> list[str] | None:
        """Lists the paths of its changed files, old names too; None if GitHub does not list all."""

    def list_pull_commits(self, number: int) -> list[PullCommit] | None:
        """Lists the commits since its base, the oldest first; None if GitHub does not list all."""

    def list_comments(self, number: int, *, first_page: int = 1) -> Iterator[PullComment]:
        """Yields the comments of a pull request, the oldest first, over all pages."""

    def get_comment(self, comment_id: int) -> PullComment:
        """Returns one comment, on any issue or pull request of the repository."""

    def create_comment(
        self, number: int, body: str, *, is_it: Callable[[PullComment], bool] | None = None
    ) -> PullComment:
        """Writes a new comment, exactly one, and returns it.

        If GitHub fails without saying whether it accepted the comment, it reads the comments again,
        and `is_it` recognises ours (by default by the same text).
        """

    def update_comment(self, comment_id: int, body: str) -> PullComment:
        """Replaces the whole body of a comment, and returns the comment."""

    def fold_comment(self, comment: PullComment) -> None:
        """Minimizes a comment as outdated: it stays, and people can open it."""

    def delete_comment(self, comment_id: int) -> None:
        """Removes a comment; if it is gone already, that is a success."""

    def write_check(self, check: CheckRun) -> None:
        """Writes a check that has ended, with all of its annotations.

        If several have one name at one commit, GitHub shows the newest, and branch rules count it.
        So a later check replaces this one.
        """

    def list_issues(self, label: str) -> list[RepositoryIssue]:
        """Lists the issues with a label, open and closed, without pull requests."""

    def create_issue(self, title: str, body: str, *, labels: Sequence[str]) -> RepositoryIssue:
        """Opens an issue and returns it; GitHub adds a label that the repository does not have."""

    def update_issue(self, number: int, *, title: str, body: str, is_open: bool) -> RepositoryIssue:
        """Replaces title and body of an issue, closes or reopens it, and returns it."""

    def my_login(self) -> str:
        """Returns the login with which this token comments; at most one request in all."""

    def get_permission(self, login: str) -> Permission:
        """Returns a person's permission in this repository."""

    def in_team(self, team: str, login: str) -> bool:
        """Whether a person is in a team (`organization/team`), as far as the token may see it."""

    def list_required_checks(self, branch: str) -> list[str]:
        """Lists the checks that rulesets require of a branch.

        Older protection rules are left out, because only administrators may read them.
        """

    def add_reaction(self, comment_id: int, content: Reaction) -> None:
        """Adds a reaction to a comment; the same reaction twice counts as one."""

    def dispatch_workflow(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        """Starts a workflow (its file name) by `workflow_dispatch`."""

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        """Returns the zip file of a workflow run's artifact, of at most `max_bytes`."""


# Which of many pull requests are open, with a handful of requests. Pure except for its two
# arguments.
#
# To ask for each of 200 numbers would take 200 requests. The list of open pull requests decides
# them all at once: a number that is not on it is closed. That is true only if the list is one page.
# If it has several pages and a pull request closes meanwhile, the ones after it move one place
# forward, and one of them can move from the second page to the first after the first was read. A
# removal by such a list would remove a live environment. So with several pages a number counts as
# closed only if GitHub itself said so. A number that was not seen within the allowed requests is
# `unknown`: nothing happens to it today, and tomorrow it is asked again.


MOST_REQUESTS = 5
_MOST_OPEN_PAGES = 50

PullPage = Callable[[Mapping[str, str | int]], tuple[list[PullRequest], bool]]


def poll_states_of_github_pulls(
    numbers: Collection[int], page: PullPage, get_pull: Callable[[int], PullRequest]
) -> dict[int, PullState]:
    """Returns each number's state, with at most `MOST_REQUESTS` requests if at most 300 are open.

    In a repository with more, it needs the pages of the open ones, and two more requests.

    Args:
        numbers: The pull requests to ask about.
        page: Returns one page of the list of pull requests, and whether there is a next one.
        get_pull: Returns one pull request.
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
        # The list begins with what was closed lately, and a nightly sweep looks for that.
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
    """Returns how many pages the list of open pull requests has, and the numbers on it."""
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
