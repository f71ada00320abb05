"""What happened on GitHub: the event file as typed, frozen records. Pure, and fast to import.

GitHub writes the payload of the event that started a workflow to a JSON file
(https://docs.github.com/en/webhooks/webhook-events-and-payloads). Only what a decision needs is
Only what a decision needs is read. For any JSON, the result is one of the records below, or
`BadInput` with the path of the missing or wrong key: no `KeyError` escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ci_bot.errors import BadInput

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha

EVENT_FILE_HINT = "GITHUB_EVENT_PATH must name the file that GitHub wrote for this run."

# A cursor over the event file's JSON; its errors name the place of the fault. Pure.


T = TypeVar("T")
BIGGEST = 2**63 - 1
_SHA = re.compile(r"[0-9a-f]{40}")

_REPOSITORY = re.compile(
    r"(?!\.{1,2}/)[A-Za-z0-9_.-]{1,100}/(?!\.{1,2}\Z)[A-Za-z0-9_.-]{1,100}", re.ASCII
)


def is_repository_in_event(text: str) -> bool:
    """Whether `text` is an `owner/name` that is safe in a path as it is."""
    return _REPOSITORY.fullmatch(text) is not None


def is_sha_in_event(text: str) -> bool:
    """Whether `text` is the whole id of a commit."""
    return _SHA.fullmatch(text) is not None


class EventPayloadNode:
    """A value in the payload that knows its path, so that every error can name it."""

    def __init__(self, value: object, path: str, event: str) -> None:
        self.value = value
        self.path = path
        self.event = event

    def get_child(self, key: str) -> EventPayloadNode:
        """Returns the value at `key`; null counts as a value.

        Raises:
            BadInput: there is no such key.
        """
        below = f"{self.path}.{key}" if self.path else key
        if not isinstance(self.value, Mapping) or key not in self.value:
            raise self._make_error(f"The event file of this {self.event} run lacks `{below}`.")
        return EventPayloadNode(self.value[key], below, self.event)

    def get_node(self, path: str) -> EventPayloadNode:
        """Returns the value at a dotted path below this one.

        Raises:
            BadInput: a key of the path is missing.
        """
        node = self
        for key in path.split("."):
            node = node.get_child(key)
        return node

    def read_optional(self, path: str, read: Callable[[EventPayloadNode], T]) -> T | None:
        """Returns the result of `read` for the value at `path`; None if any part is absent."""
        node = self
        for key in path.split("."):
            if not isinstance(node.value, Mapping) or node.value.get(key) is None:
                return None
            node = node.get_child(key)
        return read(node)

    def read_text(self) -> str:
        if not isinstance(self.value, str):
            raise self.make_type_error("text")
        return self.value

    def read_name(self) -> str:
        text = self.read_text()
        if not text:
            raise self.make_type_error("a name")
        return text

    def read_sha(self) -> str:
        if not isinstance(self.value, str) or not is_sha_in_event(self.value):
            raise self.make_type_error("a commit's 40 hexadecimal digits")
        return self.value

    def read_repository(self) -> str:
        if not isinstance(self.value, str) or not is_repository_in_event(self.value):
            raise self.make_type_error("owner/name")
        return self.value

    def read_positive(self) -> int:
        if type(self.value) is not int or not 0 < self.value <= BIGGEST:
            raise self.make_type_error("a positive whole number")
        return self.value

    def read_flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.make_type_error("true or false")
        return self.value

    def make_type_error(self, expected: str) -> BadInput:
        where = f"`{self.path}`" if self.path else "the whole document"
        return self._make_error(
            f"In the event file of this {self.event} run, {where} is not {expected}."
        )

    def _make_error(self, message: str) -> BadInput:
        return BadInput(
            message,
            hint=(
                "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH must be those that GitHub set for this "
                "run; a hand-made event file needs this key."
            ),
            reason_code="event_unreadable",
        )


GHOST = "ghost"  # GitHub's name for the author of something whose account was deleted
DEPENDABOT = "dependabot[bot]"
_MERGE_QUEUE_REF = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,18})-[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class PullRequestEvent:
    """`pull_request` or `pull_request_target`.

    `merge_sha` is GitHub's test merge commit if the run was started on it, else the payload's
    (which may be from before the last push), else None. `retargeted` is whether the edit in this
    event changed the base branch.
    """

    name: str
    action: str
    repository: str
    number: int
    head_sha: Sha
    base_sha: Sha
    merge_sha: Sha | None
    head_ref: str
    base_ref: str
    head_repository: str | None
    author: str
    draft: bool
    merged: bool
    sender: str
    default_branch: str | None = None
    retargeted: bool = False

    @property
    def is_fork(self) -> bool:
        """Whether the head is in another repository, or in one that was deleted."""
        return not is_same_repository_in_event(self.head_repository, self.repository)

    @property
    def is_dependabot(self) -> bool:
        """Whether Dependabot opened it; the author counts, not the account that started the run."""
        return self.author == DEPENDABOT

    @property
    def has_secrets(self) -> bool:
        """Whether GitHub gives this run the repository's secrets and a token that can write.

        A `pull_request` of a fork or of Dependabot gets neither. `pull_request_target` gets both
        for everybody, because it runs the default branch's workflow and none of their code; only if
        Dependabot itself closes its pull request, the token can just read.
        https://docs.github.com/en/code-security/dependabot/troubleshooting-dependabot/troubleshooting-dependabot-on-github-actions
        """
        return self.name == "pull_request_target" or not (self.is_fork or self.is_dependabot)


@dataclass(frozen=True, kw_only=True)
class DispatchEvent:
    """`workflow_dispatch`. The inputs' names have dashes, also if the workflow uses underscores."""

    repository: str | None
    ref: str | None
    sender: str
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CommentEvent:
    """`issue_comment`, on a pull request or on a plain issue."""

    action: str
    repository: str
    number: int
    on_pull_request: bool
    open: bool
    comment_id: int
    body: str
    author: str
    author_is_bot: bool
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class ScheduleEvent:
    """`schedule`: the nightly run. Its payload has nothing that we need."""

    cron: str | None


@dataclass(frozen=True, kw_only=True)
class WorkflowRunEvent:
    """`workflow_run`: another workflow of the repository has started or ended."""

    action: str
    repository: str
    run_id: int
    run_event: str
    conclusion: str | None
    head_sha: Sha
    head_branch: str | None
    head_repository: str | None

    @property
    def is_fork(self) -> bool:
        """Whether the code of that run came from another repository, or from a deleted one."""
        return not is_same_repository_in_event(self.head_repository, self.repository)


@dataclass(frozen=True, kw_only=True)
class MergeGroupEvent:
    """`merge_group`: a merge queue asks for its checks. `number` is that of the last PR in it."""

    action: str
    repository: str
    head_sha: Sha
    base_sha: Sha
    number: int | None
    base_ref: str | None = None
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class OtherEvent:
    """An event for which nothing is done here."""

    name: str
    action: str | None


Event = (
    PullRequestEvent
    | DispatchEvent
    | CommentEvent
    | ScheduleEvent
    | WorkflowRunEvent
    | MergeGroupEvent
    | OtherEvent
)


def is_same_repository_in_event(one: str | None, other: str | None) -> bool:
    """Whether two `owner/name` are the same; GitHub ignores their case. None equals nothing."""
    return one is not None and other is not None and one.lower() == other.lower()


def read_github_event(name: str, text: str, *, sha: Sha | None = None) -> Event:
    """Reads the event `name` from the text of its event file.

    Args:
        name: `GITHUB_EVENT_NAME`.
        text: The content of the file at `GITHUB_EVENT_PATH`.
        sha: `GITHUB_SHA`, which is the test merge commit if the event is `pull_request`.

    Raises:
        BadInput: the text is no JSON, or a needed key is missing or has a wrong value.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(
            "The event file is not JSON.",
            hint=EVENT_FILE_HINT,
            reason_code="event_unreadable",
        ) from None
    return parse_github_event(name, payload, sha=sha)


def parse_github_event(name: str, payload: object, *, sha: Sha | None = None) -> Event:
    """Reads the event `name` from its payload; see `read_github_event`."""
    parser = _PARSERS.get(name)
    root = EventPayloadNode(payload, "", name)
    if parser is None:
        action = payload.get("action") if isinstance(payload, Mapping) else None
        return OtherEvent(name=name, action=action if isinstance(action, str) else None)
    if not isinstance(payload, Mapping):
        raise root.make_type_error("a JSON object")
    return parser(root, sha)


def _read_pull_request_event(root: EventPayloadNode, sha: Sha | None) -> PullRequestEvent:
    pull = root.get_child("pull_request")
    started_on_merge = root.event == "pull_request" and sha is not None and is_sha_in_event(sha)
    action = root.get_child("action").read_name()
    return PullRequestEvent(
        name=root.event,
        action=action,
        repository=root.get_node("repository.full_name").read_repository(),
        number=pull.get_child("number").read_positive(),
        head_sha=pull.get_node("head.sha").read_sha(),
        base_sha=pull.get_node("base.sha").read_sha(),
        merge_sha=sha
        if started_on_merge
        else pull.read_optional("merge_commit_sha", EventPayloadNode.read_sha),
        head_ref=pull.get_node("head.ref").read_name(),
        base_ref=pull.get_node("base.ref").read_name(),
        head_repository=pull.read_optional("head.repo.full_name", EventPayloadNode.read_repository),
        author=pull.read_optional("user.login", EventPayloadNode.read_name) or GHOST,
        draft=pull.read_optional("draft", EventPayloadNode.read_flag) or False,
        merged=pull.read_optional("merged", EventPayloadNode.read_flag) or False,
        sender=root.read_optional("sender.login", EventPayloadNode.read_name) or GHOST,
        default_branch=root.read_optional("repository.default_branch", EventPayloadNode.read_name),
        # After an edit of title or text, `changes` exists, too, but without this key.
        retargeted=action == "edited"
        and root.read_optional("changes.base", _read_dispatch_value) is not None,
    )


def _read_dispatch_event(root: EventPayloadNode, _: str | None) -> DispatchEvent:
    return DispatchEvent(
        repository=root.read_optional("repository.full_name", EventPayloadNode.read_repository),
        ref=root.read_optional("ref", EventPayloadNode.read_name),
        sender=root.read_optional("sender.login", EventPayloadNode.read_name) or GHOST,
        inputs=root.read_optional("inputs", _read_dispatch_inputs) or {},
    )


def _read_dispatch_inputs(node: EventPayloadNode) -> dict[str, str]:
    """Returns dispatch inputs as text: GitHub sends switches as JSON booleans or as words."""
    if not isinstance(node.value, Mapping):
        raise node.make_type_error("a JSON object")
    return {
        str(key).replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
        for key, value in node.value.items()
        if isinstance(value, str | bool) or (type(value) is int and abs(value) <= BIGGEST)
    }


def _read_comment_event(root: EventPayloadNode, _: str | None) -> CommentEvent:
    comment = root.get_child("comment")
    issue = root.get_child("issue")
    author = comment.read_optional("user.login", EventPayloadNode.read_name) or GHOST
    return CommentEvent(
        action=root.get_child("action").read_name(),
        repository=root.get_node("repository.full_name").read_repository(),
        number=issue.get_child("number").read_positive(),
        # GitHub adds this object only to an issue that is a pull request.
        on_pull_request=isinstance(
            issue.read_optional("pull_request", _read_dispatch_value), Mapping
        ),
        open=issue.get_child("state").read_text() == "open",
        comment_id=comment.get_child("id").read_positive(),
        body=comment.read_optional("body", EventPayloadNode.read_text) or "",
        author=author,
        author_is_bot=comment.read_optional("user.type", EventPayloadNode.read_text) == "Bot"
        or author.endswith("[bot]"),
        default_branch=root.read_optional("repository.default_branch", EventPayloadNode.read_name),
    )


def _read_dispatch_value(node: EventPayloadNode) -> object:
    return node.value


def _read_schedule_event(root: EventPayloadNode, _: str | None) -> ScheduleEvent:
    return ScheduleEvent(cron=root.read_optional("schedule", EventPayloadNode.read_text))


def _read_workflow_run_event(root: EventPayloadNode, _: str | None) -> WorkflowRunEvent:
    run = root.get_child("workflow_run")
    return WorkflowRunEvent(
        action=root.get_child("action").read_name(),
        repository=root.get_node("repository.full_name").read_repository(),
        run_id=run.get_child("id").read_positive(),
        run_event=run.get_child("event").read_name(),
        conclusion=run.read_optional("conclusion", EventPayloadNode.read_text),
        head_sha=run.get_child("head_sha").read_sha(),
        head_branch=run.read_optional("head_branch", EventPayloadNode.read_name),
        head_repository=run.read_optional(
            "head_repository.full_name", EventPayloadNode.read_repository
        ),
    )


def _read_merge_group_event(root: EventPayloadNode, _: str | None) -> MergeGroupEvent:
    group = root.get_child("merge_group")
    queued = _MERGE_QUEUE_REF.fullmatch(group.get_child("head_ref").read_text())
    return MergeGroupEvent(
        action=root.get_child("action").read_name(),
        repository=root.get_node("repository.full_name").read_repository(),
        head_sha=group.get_child("head_sha").read_sha(),
        base_sha=group.get_child("base_sha").read_sha(),
        number=int(queued[1]) or None if queued else None,
        base_ref=_parse_branch(group.read_optional("base_ref", EventPayloadNode.read_name)),
        default_branch=root.read_optional("repository.default_branch", EventPayloadNode.read_name),
    )


def _parse_branch(ref: str | None) -> str | None:
    return None if ref is None else ref.removeprefix("refs/heads/")


_PARSERS: dict[str, Callable[[EventPayloadNode, str | None], Event]] = {
    "pull_request": _read_pull_request_event,
    "pull_request_target": _read_pull_request_event,
    "workflow_dispatch": _read_dispatch_event,
    "issue_comment": _read_comment_event,
    "schedule": _read_schedule_event,
    "workflow_run": _read_workflow_run_event,
    "merge_group": _read_merge_group_event,
}
