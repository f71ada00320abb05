"""The port's one implementation: GitHub's REST API, for one repository, with every request counted.

The cost of each verb is one request, and one more for each further page of a list. GraphQL does
what REST cannot: it says whose this token is (`GET /user` is closed to the token of a workflow
run), and it folds a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from urllib.parse import quote

from ci_bot.bot.actions import is_repository_in_event
from ci_bot.bot.github import records
from ci_bot.bot.github.failures import HURRIED, PATIENT, GitHubRateLimits
from ci_bot.bot.github.port import (
    PER_PAGE,
    NotFound,
    Permission,
    PullComment,
    PullCommit,
    PullRequest,
    PullState,
    Reaction,
    RejectedContent,
    RepositoryIssue,
    poll_states_of_github_pulls,
)
from ci_bot.bot.github.records import (
    FRESH_ARTIFACT_HINT,
    GitHubRestClient,
    download_github_artifact,
)
from ci_bot.bot.github.transport import GRAPHQL, GitHubClientTime, GitHubTransport, UnclearWrite
from ci_bot.errors import BadInput, BotError, GitHubUnavailable

if TYPE_CHECKING:
    from ci_bot.bot.report import CheckRun
    from ci_bot.protocol.base import Sha

ACTIONS_BOT = "github-actions[bot]"
# Only tokens of GitHub Apps start like this, including the token of a workflow run:
# https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
_APP_TOKEN = "ghs_"  # noqa: S105 - a prefix  # nosec B105
_MOST_FILES = 3_000  # GitHub lists no more for one pull request
_MOST_COMMITS = 250  # GitHub lists no more commits for one pull request
_SETTLE_WAITS = (1.0, 2.0, 4.0)
# https://docs.github.com/en/graphql/reference/mutations#minimizecomment
_FOLD = (
    "mutation($input: MinimizeCommentInput!) "
    "{ minimizeComment(input: $input) { minimizedComment { isMinimized } } }"
)
_FOLDED = "data.minimizeComment.minimizedComment.isMinimized"
_ANNOTATIONS = 50  # the most that GitHub accepts in one request; further ones are appended


class GitHubClient:
    """One repository, with the rights that the owner of a token has there.

    Args:
        repository: `owner/name`.
        token: The token; see `GitHubTransport`.
        api_url: `GITHUB_API_URL`.
        time: Clocks and sleep.
        limits: The patience with GitHub; `HURRIED` for the last seconds of a cancelled run.
        agent: The User-Agent header.
        trust: A file or directory of certificates to trust; see
            `urls.find_certificates_for_github`.
    """

    def __init__(
        self,
        *,
        repository: str,
        token: str,
        api_url: str,
        time: GitHubClientTime,
        limits: GitHubRateLimits = PATIENT,
        agent: str = "sqlmesh-plan-review",
        trust: str | None = None,
    ) -> None:
        if not is_repository_in_event(repository):
            raise BadInput(
                "The repository's name is not owner/name.",
                hint="GITHUB_REPOSITORY must be as GitHub sets it for the run.",
            )
        self._root = f"/repos/{repository}"
        self._rest = GitHubRestClient(
            GitHubTransport(
                api_url=api_url, token=token, agent=agent, time=time, limits=limits, trust=trust
            )
        )
        self._is_app = token.startswith(_APP_TOKEN)
        self._login: str | None = None
        self._time = time
        self._limits = limits

    def hurry_requests(self) -> None:
        """Hurries from now on, in the last seconds of a cancelled run; see `HURRIED`."""
        self._rest.transport.hurry_requests()
        self._limits = HURRIED

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        return self._rest.transport.limit_waits(seconds)

    def get_pull(self, number: int, *, settle: bool = False) -> PullRequest:
        doing, path = f"read pull request {number}", f"{self._root}/pulls/{number:d}"
        pull = self._rest.request_record(
            "GET", path, records.read_pull_request_record, doing, "pull-requests: read"
        )
        for wait in _SETTLE_WAITS if settle else ():
            if pull.mergeable is not None or not pull.open:
                break
            # GitHub begins to compute it when it is asked, and until then answers null.
            self._time.sleep(wait)
            pull = self._rest.request_record(
                "GET", path, records.read_pull_request_record, doing, "pull-requests: read"
            )
        return pull

    def pulls_for_sha(self, sha: Sha, *, head: str | None = None) -> list[PullRequest]:
        doing, needs = "find the pull request of a commit", "pull-requests: read"
        found: list[PullRequest] = []
        if head is not None:
            query = {"state": "open", "head": head}
            found = list(
                self._rest.request_pages(
                    f"{self._root}/pulls", records.read_pull_request_record, doing, needs, query
                )
            )
        if not any(pull.head_sha == sha for pull in found):
            path = f"{self._root}/commits/{quote(sha, safe='')}/pulls"
            found = list(
                self._rest.request_pages(path, records.read_pull_request_record, doing, needs)
            )
        return [pull for pull in found if pull.open and pull.head_sha == sha]

    def pull_states(self, numbers: Collection[int]) -> dict[int, PullState]:
        def read_page(query: Mapping[str, str | int]) -> tuple[list[PullRequest], bool]:
            return self._rest.request_page(
                f"{self._root}/pulls",
                records.read_pull_request_record,
                "list the pull requests",
                "pull-requests: read",
                query,
            )

        return poll_states_of_github_pulls(numbers, read_page, self.get_pull)

    def changed_files(self, number: int) -> list[str] | None:
        names: list[str] = []
        count = 0
        for old, new in self._rest.request_pages(
            f"{self._root}/pulls/{number:d}/files",
            lambda data: (
                records.read_optional_field_of_github_answer(data, "previous_filename", str),
                records.read_field_of_github_answer(data, "filename", str),
            ),
            f"list the files of pull request {number}",
            "pull-requests: read",
        ):
            count += 1
            names += [name for name in (old, new) if name]
        return names if count < _MOST_FILES else None

    def list_pull_commits(self, number: int) -> list[PullCommit] | None:
        found = list(
            self._rest.request_pages(
                f"{self._root}/pulls/{number:d}/commits",
                records.read_commit_record,
                f"list the commits of pull request {number}",
                "pull-requests: read",
            )
        )
        return found if len(found) < _MOST_COMMITS else None

    def list_comments(self, number: int, *, first_page: int = 1) -> Iterator[PullComment]:
        return self._rest.request_pages(
            f"{self._root}/issues/{number:d}/comments",
            records.read_comment_record,
            f"read the comments of pull request {number}",
            "pull-requests: read",
            first_page=first_page,
        )

    def get_comment(self, comment_id: int) -> PullComment:
        return self._rest.request_record(
            "GET",
            f"{self._root}/issues/comments/{comment_id:d}",
            records.read_comment_record,
            f"read comment {comment_id}",
            "pull-requests: read",
        )

    def create_comment(
        self, number: int, body: str, *, is_it: Callable[[PullComment], bool] | None = None
    ) -> PullComment:
        recognised = is_it or (lambda comment: is_same_comment_text(comment.body, body))
        for tries in range(1, self._limits.tries + 1):
            try:
                written = self._rest.request_record(
                    "POST",
                    f"{self._root}/issues/{number:d}/comments",
                    records.read_comment_record,
                    f"write a comment on pull request {number}",
                    "pull-requests: write",
                    body={"body": body},
                    resend=False,
                )
            except UnclearWrite:
                if tries == self._limits.tries:
                    raise
            else:
                self._login = written.author  # the author of this comment is certainly this token
                return written
            # GitHub may have accepted it anyway, and may still be busy with it.
            self._rest.transport.pause_between_tries(tries)
            for comment in self.list_comments(number):
                if recognised(comment):
                    return comment
        raise AssertionError("unreachable: the last try returns or raises")

    def update_comment(self, comment_id: int, body: str) -> PullComment:
        return self._rest.request_record(
            "PATCH",
            f"{self._root}/issues/comments/{comment_id:d}",
            records.read_comment_record,
            f"write comment {comment_id}",
            "pull-requests: write",
            body={"body": body},
        )

    def fold_comment(self, comment: PullComment) -> None:
        self._rest.request_record(
            "POST",
            GRAPHQL,
            lambda data: records.read_field_of_github_answer(data, _FOLDED, bool),
            f"fold comment {comment.id}",
            "pull-requests: write",
            body={
                "query": _FOLD,
                "variables": {"input": {"subjectId": comment.node_id, "classifier": "OUTDATED"}},
            },
        )

    def delete_comment(self, comment_id: int) -> None:
        try:
            self._rest.transport.send_request(
                "DELETE",
                f"{self._root}/issues/comments/{comment_id:d}",
                doing=f"remove comment {comment_id}",
                needs="pull-requests: write",
            )
        except NotFound:
            return

    def write_check(self, check: CheckRun) -> None:
        doing, needs = "write a check", "checks: write"
        first, *more = records.list_check_annotation_batches(check, _ANNOTATIONS)
        body = {
            "name": check.name,
            "head_sha": check.head,
            "status": "completed",
            "conclusion": check.conclusion,
            "output": first,
        }
        if check.details_url is not None:
            body["details_url"] = check.details_url
        number = self._rest.request_record(
            "POST",
            f"{self._root}/check-runs",
            lambda data: records.read_field_of_github_answer(data, "id", int),
            doing,
            needs,
            body=body,
        )
        for output in more:
            # Sent twice, they would be there twice. So a lost answer ends it.
            self._rest.transport.send_request(
                "PATCH",
                f"{self._root}/check-runs/{number:d}",
                doing=doing,
                needs=needs,
                body={"output": output},
                resend=False,
            )

    def list_issues(self, label: str) -> list[RepositoryIssue]:
        found = self._rest.request_pages(
            f"{self._root}/issues",
            lambda data: (
                None
                if records.is_github_issue_a_pull_request(data)
                else records.read_issue_record(data)
            ),
            "list the issues",
            "issues: read",
            {"labels": label, "state": "all"},
        )
        return [issue for issue in found if issue is not None]

    def create_issue(self, title: str, body: str, *, labels: Sequence[str]) -> RepositoryIssue:
        return self._rest.request_record(
            "POST",
            f"{self._root}/issues",
            records.read_issue_record,
            "open an issue",
            "issues: write",
            body={"title": title, "body": body, "labels": list(labels)},
            resend=False,
        )

    def update_issue(self, number: int, *, title: str, body: str, is_open: bool) -> RepositoryIssue:
        return self._rest.request_record(
            "PATCH",
            f"{self._root}/issues/{number:d}",
            records.read_issue_record,
            f"write issue {number}",
            "issues: write",
            body={"title": title, "body": body, "state": "open" if is_open else "closed"},
        )

    def my_login(self) -> str:
        if self._login is None:
            self._login = self._ask_login()
        return self._login

    def get_permission(self, login: str) -> Permission:
        try:
            return self._rest.request_record(
                "GET",
                f"{self._root}/collaborators/{quote(login, safe='')}/permission",
                records.read_permission_record,
                "read a person's permission",
                "metadata: read",
            )
        except NotFound:
            return "none"

    def in_team(self, team: str, login: str) -> bool:
        organization, _, name = team.partition("/")
        if not all(part.strip(".") for part in (organization, name, login)):
            return False  # a part that is only dots would lead to another place
        organization, name, person = (quote(p, safe="") for p in (organization, name, login))
        try:
            return self._rest.request_record(
                "GET",
                f"/orgs/{organization}/teams/{name}/memberships/{person}",
                records.is_member_of_github_team,
                f"read who is in {team}",
                "organization members: read, which only the token of an App or a person has",
            )
        except NotFound:
            return False

    def list_required_checks(self, branch: str) -> list[str]:
        path = f"{self._root}/rules/branches/{quote(branch, safe='')}"
        rules = self._rest.request_pages(
            path,
            records.read_required_checks_of_github_rule,
            f"read the rules of {branch}",
            "metadata: read",
        )
        return list(dict.fromkeys(name for checks in rules for name in checks))

    def add_reaction(self, comment_id: int, content: Reaction) -> None:
        self._rest.transport.send_request(
            "POST",
            f"{self._root}/issues/comments/{comment_id:d}/reactions",
            doing=f"react to comment {comment_id}",
            needs="pull-requests: write",
            body={"content": content},
        )

    def dispatch_workflow(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        try:
            self._rest.transport.send_request(
                "POST",
                f"{self._root}/actions/workflows/{quote(workflow, safe='')}/dispatches",
                doing=f"start {workflow}",
                needs="actions: write",
                body={"ref": ref, "inputs": dict(inputs)},
                resend=False,
            )
        except NotFound:
            raise _make_workflow_start_error(
                workflow, ref, "there is no workflow of this name"
            ) from None
        except RejectedContent as rejected:
            raise _make_workflow_start_error(workflow, ref, rejected.said) from None
        except UnclearWrite as unclear:
            raise GitHubUnavailable(
                unclear.message,
                hint="It may have started anyway: check the Actions tab first.",
            ) from None

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        doing, needs = "fetch the artifact of the other run", "actions: read"
        matching = self._rest.request_record(
            "GET",
            f"{self._root}/actions/runs/{run_id:d}/artifacts",
            lambda data: [
                records.read_field_of_github_answer(entry, "id", int)
                for entry in records.read_entries_of_github_answer(data, "artifacts")
                if records.read_optional_field_of_github_answer(entry, "name", str) == name
                and records.read_optional_field_of_github_answer(entry, "expired", bool) is not True
            ],
            doing,
            needs,
            query={"name": name, "per_page": PER_PAGE},
        )
        if not matching:
            raise NotFound(
                f"The run {run_id} has no artifact of this name, or it has expired.",
                hint=FRESH_ARTIFACT_HINT,
                reason_code="artifact_gone",
            )
        # A repeated run has one artifact for each attempt; ids only grow.
        reply = self._rest.transport.send_request(
            "GET",
            f"{self._root}/actions/artifacts/{max(matching):d}/zip",
            doing=doing,
            needs=needs,
            redirect=True,
        )
        return download_github_artifact(
            reply.headers.get("location", ""),
            doing=doing,
            max_bytes=max_bytes,
            timeout=self._limits.timeout,
            monotonic=self._time.monotonic,
            budget=self._limits.budget,
            trust=self._rest.transport.trust,
        )

    def _ask_login(self) -> str:
        """Finds out whose this token is; returns the login.

        A workflow's token and an App's can ask only GraphQL, a person's can ask either. Both answer
        with the login that REST shows as a comment's author, including `[bot]`. If a server knows
        neither, we count as GitHub Actions' own bot.
        """
        doing, needs = "find out who the token belongs to", "metadata: read"
        try:
            if self._is_app:
                query = {"query": "query { viewer { login } }"}
                return self._rest.request_record(
                    "POST",
                    GRAPHQL,
                    lambda data: records.read_field_of_github_answer(
                        data, "data.viewer.login", str
                    ),
                    doing,
                    needs,
                    body=query,
                )
            return self._rest.request_record(
                "GET",
                "/user",
                lambda data: records.read_field_of_github_answer(data, "login", str),
                doing,
                needs,
            )
        except GitHubUnavailable as error:
            if error.reason_code != "github_unexpected":
                raise
            return ACTIONS_BOT
        except BotError as error:
            if error.reason_code == "bad_credentials":
                raise
            return ACTIONS_BOT


def _make_workflow_start_error(workflow: str, ref: str, why: str) -> BadInput:
    return BadInput(
        f"GitHub does not start {workflow}: {why.rstrip('.')}.",
        hint=f"Copy it from this release's examples to .github/workflows/ on `{ref}`: it has to "
        "have `workflow_dispatch` with the inputs that it has there. GitHub also answers this way "
        "where the token lacks `actions: write`.",
        reason_code="workflow_not_started",
    )


def is_same_comment_text(one: str, other: str) -> bool:
    """Whether two bodies are the same, except for line ends and for blanks at both ends."""
    return _normalize_comment_text(one) == _normalize_comment_text(other)


def _normalize_comment_text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
