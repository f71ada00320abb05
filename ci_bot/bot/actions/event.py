"""What happened on GitHub: the event file as typed, frozen records. Pure, and fast to import.

GitHub writes the payload of the event that started a workflow to a JSON file
(https://docs.github.com/en/webhooks/webhook-events-and-payloads). Only what a decision needs is
read. Whatever the JSON holds, the outcome is one of the records below or `BadInput` with the path
of the key that is missing or wrong: no `KeyError` escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ci_bot.errors import BadInput

# A cursor over the event file's JSON that names the place of everything that is wrong. Pure.


T = TypeVar("T")

BIGGEST = 2**63 - 1

_SHA = re.compile(r"[0-9a-f]{40}")

_REPOSITORY = re.compile(
    r"(?!\.{1,2}/)[A-Za-z0-9_.-]{1,100}/(?!\.{1,2}\Z)[A-Za-z0-9_.-]{1,100}", re.ASCII
)


def is_repository(text: str) -> bool:
    """Whether `text` is an `owner/name` that can be put into a path as it is."""
    return _REPOSITORY.fullmatch(text) is not None


def is_sha(text: str) -> bool:
    """Whether `text` is a commit's whole id."""
    return _SHA.fullmatch(text) is not None


class Node:
    """A place in the payload that knows its path, so that every complaint can name it."""

    def __init__(self, value: object, path: str, event: str) -> None:
        self.value = value
        self.path = path
        self.event = event

    def child(self, key: str) -> Node:
        """The value at `key`; a complaint where there is none. Null counts as a value."""
        below = f"{self.path}.{key}" if self.path else key
        if not isinstance(self.value, Mapping) or key not in self.value:
            raise self._complaint(f"The event file of this {self.event} run lacks `{below}`.")
        return Node(self.value[key], below, self.event)

    def at(self, path: str) -> Node:
        """The value at a dotted path below this one."""
        node = self
        for key in path.split("."):
            node = node.child(key)
        return node

    def optional(self, path: str, read: Callable[[Node], T]) -> T | None:
        """What `read` makes of the value at `path`; None where something on the way is absent."""
        node = self
        for key in path.split("."):
            if not isinstance(node.value, Mapping) or node.value.get(key) is None:
                return None
            node = node.child(key)
        return read(node)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong("text")
        return self.value

    def name(self) -> str:
        text = self.text()
        if not text:
            raise self.wrong("a name")
        return text

    def sha(self) -> str:
        if not isinstance(self.value, str) or not is_sha(self.value):
            raise self.wrong("a commit's 40 hexadecimal digits")
        return self.value

    def repository(self) -> str:
        if not isinstance(self.value, str) or not is_repository(self.value):
            raise self.wrong("owner/name")
        return self.value

    def positive(self) -> int:
        if type(self.value) is not int or not 0 < self.value <= BIGGEST:
            raise self.wrong("a positive whole number")
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def wrong(self, expected: str) -> BadInput:
        where = f"`{self.path}`" if self.path else "the whole document"
        return self._complaint(
            f"In the event file of this {self.event} run, {where} is not {expected}."
        )

    def _complaint(self, message: str) -> BadInput:
        return BadInput(
            message,
            hint=(
                "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH must be those that GitHub set for this "
                "run; a hand-made event file needs this key."
            ),
            reason_code="event_unreadable",
        )


GHOST = "ghost"  # GitHub's name for the author of what a deleted account left behind

DEPENDABOT = "dependabot[bot]"

_MERGE_QUEUE_REF = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,18})-[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class PullRequestEvent:
    """`pull_request` or `pull_request_target`.

    `merge_sha` is GitHub's test merge commit where the run was started on it, else what the payload
    says (which may be from before the last push), else None. `retargeted` is whether the edit that
    this event tells of gave the pull request another base branch.
    """

    name: str
    action: str
    repository: str
    number: int
    head_sha: str
    base_sha: str
    merge_sha: str | None
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
        """Whether the head lives in another repository, or in one that is gone."""
        return not same_repository(self.head_repository, self.repository)

    @property
    def is_dependabot(self) -> bool:
        """Whether Dependabot opened it. The author decides, not who triggered the run last."""
        return self.author == DEPENDABOT

    @property
    def has_secrets(self) -> bool:
        """Whether GitHub gives this run the repository's secrets and a token that writes.

        A `pull_request` of a fork or of Dependabot gets neither. `pull_request_target` gets both
        for everybody, because it runs the default branch's workflow and none of their code; only
        where Dependabot itself closes its pull request the token is read-only all the same.
        https://docs.github.com/en/code-security/dependabot/troubleshooting-dependabot/troubleshooting-dependabot-on-github-actions
        """
        return self.name == "pull_request_target" or not (self.is_fork or self.is_dependabot)


@dataclass(frozen=True, kw_only=True)
class DispatchEvent:
    """`workflow_dispatch`. The inputs' names have dashes, whatever the workflow spells."""

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
    """`schedule`: the nightly run. Its payload holds nothing that is needed."""

    cron: str | None


@dataclass(frozen=True, kw_only=True)
class WorkflowRunEvent:
    """`workflow_run`: another workflow of the repository has started or ended."""

    action: str
    repository: str
    run_id: int
    run_event: str
    conclusion: str | None
    head_sha: str
    head_branch: str | None
    head_repository: str | None

    @property
    def is_fork(self) -> bool:
        """Whether the code of that run came from another repository, or from one that is gone."""
        return not same_repository(self.head_repository, self.repository)


@dataclass(frozen=True, kw_only=True)
class MergeGroupEvent:
    """`merge_group`: a merge queue asks for its checks. The number is that of the last PR in it."""

    action: str
    repository: str
    head_sha: str
    base_sha: str
    number: int | None
    base_ref: str | None = None
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class OtherEvent:
    """An event that nothing here serves."""

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


def same_repository(one: str | None, other: str | None) -> bool:
    """Whether two `owner/name` are the same; GitHub ignores their case. None equals nothing."""
    return one is not None and other is not None and one.lower() == other.lower()


def read_event(name: str, text: str, *, sha: str | None = None) -> Event:
    """The event `name` from the text of its event file.

    Args:
        name: `GITHUB_EVENT_NAME`.
        text: The content of the file at `GITHUB_EVENT_PATH`.
        sha: `GITHUB_SHA`, which is the test merge commit where the event is `pull_request`.

    Raises:
        BadInput: The text is no JSON, or a key that is needed is missing or has a wrong value.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(
            "The event file is not JSON.",
            hint="GITHUB_EVENT_PATH must name the file that GitHub wrote for this run.",
            reason_code="event_unreadable",
        ) from None
    return parse_event(name, payload, sha=sha)


def parse_event(name: str, payload: object, *, sha: str | None = None) -> Event:
    """The event `name` from its payload; see `read_event`."""
    parser = _PARSERS.get(name)
    root = Node(payload, "", name)
    if parser is None:
        action = payload.get("action") if isinstance(payload, Mapping) else None
        return OtherEvent(name=name, action=action if isinstance(action, str) else None)
    if not isinstance(payload, Mapping):
        raise root.wrong("a JSON object")
    return parser(root, sha)


def _pull_request(root: Node, sha: str | None) -> PullRequestEvent:
    pull = root.child("pull_request")
    started_on_merge = root.event == "pull_request" and sha is not None and is_sha(sha)
    action = root.child("action").name()
    return PullRequestEvent(
        name=root.event,
        action=action,
        repository=root.at("repository.full_name").repository(),
        number=pull.child("number").positive(),
        head_sha=pull.at("head.sha").sha(),
        base_sha=pull.at("base.sha").sha(),
        merge_sha=sha if started_on_merge else pull.optional("merge_commit_sha", Node.sha),
        head_ref=pull.at("head.ref").name(),
        base_ref=pull.at("base.ref").name(),
        head_repository=pull.optional("head.repo.full_name", Node.repository),
        author=pull.optional("user.login", Node.name) or GHOST,
        draft=pull.optional("draft", Node.flag) or False,
        merged=pull.optional("merged", Node.flag) or False,
        sender=root.optional("sender.login", Node.name) or GHOST,
        default_branch=root.optional("repository.default_branch", Node.name),
        # An edit of title or text has `changes` of its own, without this key.
        retargeted=action == "edited" and root.optional("changes.base", _value) is not None,
    )


def _dispatch(root: Node, _: str | None) -> DispatchEvent:
    return DispatchEvent(
        repository=root.optional("repository.full_name", Node.repository),
        ref=root.optional("ref", Node.name),
        sender=root.optional("sender.login", Node.name) or GHOST,
        inputs=root.optional("inputs", _inputs) or {},
    )


def _inputs(node: Node) -> dict[str, str]:
    """Dispatch inputs as text: GitHub sends switches as JSON booleans or as the words for them."""
    if not isinstance(node.value, Mapping):
        raise node.wrong("a JSON object")
    return {
        str(key).replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
        for key, value in node.value.items()
        if isinstance(value, str | bool) or (type(value) is int and abs(value) <= BIGGEST)
    }


def _comment(root: Node, _: str | None) -> CommentEvent:
    comment = root.child("comment")
    issue = root.child("issue")
    author = comment.optional("user.login", Node.name) or GHOST
    return CommentEvent(
        action=root.child("action").name(),
        repository=root.at("repository.full_name").repository(),
        number=issue.child("number").positive(),
        # GitHub adds this object to an issue that is a pull request, and says nothing otherwise.
        on_pull_request=isinstance(issue.optional("pull_request", _value), Mapping),
        open=issue.child("state").text() == "open",
        comment_id=comment.child("id").positive(),
        body=comment.optional("body", Node.text) or "",
        author=author,
        author_is_bot=comment.optional("user.type", Node.text) == "Bot" or author.endswith("[bot]"),
        default_branch=root.optional("repository.default_branch", Node.name),
    )


def _value(node: Node) -> object:
    return node.value


def _schedule(root: Node, _: str | None) -> ScheduleEvent:
    return ScheduleEvent(cron=root.optional("schedule", Node.text))


def _workflow_run(root: Node, _: str | None) -> WorkflowRunEvent:
    run = root.child("workflow_run")
    return WorkflowRunEvent(
        action=root.child("action").name(),
        repository=root.at("repository.full_name").repository(),
        run_id=run.child("id").positive(),
        run_event=run.child("event").name(),
        conclusion=run.optional("conclusion", Node.text),
        head_sha=run.child("head_sha").sha(),
        head_branch=run.optional("head_branch", Node.name),
        head_repository=run.optional("head_repository.full_name", Node.repository),
    )


def _merge_group(root: Node, _: str | None) -> MergeGroupEvent:
    group = root.child("merge_group")
    queued = _MERGE_QUEUE_REF.fullmatch(group.child("head_ref").text())
    return MergeGroupEvent(
        action=root.child("action").name(),
        repository=root.at("repository.full_name").repository(),
        head_sha=group.child("head_sha").sha(),
        base_sha=group.child("base_sha").sha(),
        number=int(queued[1]) or None if queued else None,
        base_ref=_branch(group.optional("base_ref", Node.name)),
        default_branch=root.optional("repository.default_branch", Node.name),
    )


def _branch(ref: str | None) -> str | None:
    return None if ref is None else ref.removeprefix("refs/heads/")


_PARSERS: dict[str, Callable[[Node, str | None], Event]] = {
    "pull_request": _pull_request,
    "pull_request_target": _pull_request,
    "workflow_dispatch": _dispatch,
    "issue_comment": _comment,
    "schedule": _schedule,
    "workflow_run": _workflow_run,
    "merge_group": _merge_group,
}
