"""A GitHub in memory, and the bot's publisher that writes to it, for tests that watch what is said."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ci_bot.bot.actions.inputs import ActionInputs, ActionRunnerFacts, ActionSettings
from ci_bot.bot.actions.workflow_commands import (
    ActionStepOutputs,
    ActionStepSummary,
    WorkflowCommands,
)
from ci_bot.bot.github.port import Permission, PullComment, PullRequest, Reaction
from ci_bot.bot.github.sticky_posts import GitHubStickyComment
from ci_bot.bot.handlers.handler import HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.report.markdown.check_run import CheckRun
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.errors import BotError
from ci_bot.host import Machine
from ci_bot.redaction import Redactor
from tests.factories import HEAD, make_context

ME = "github-actions[bot]"
NOON = datetime(2026, 8, 22, 12, tzinfo=timezone.utc)
RUNNER = ActionRunnerFacts(
    repository="shop/warehouse",
    api_url="https://api.github.com",
    server_url="https://github.com",
    workspace="/nowhere",
    event_name="issue_comment",
    event_path="/nowhere/event.json",
    action_repository="octo/sqlmesh-plan-review",
    action_ref="v0.1.0",
)


@dataclass
class Memory:
    """The part of GitHub that a run on one pull request needs. Every call is remembered."""

    role: Permission = "write"
    pull: PullRequest = field(
        default_factory=lambda: PullRequest(
            number=142,
            open=True,
            merged=False,
            draft=False,
            mergeable=True,
            head_sha=HEAD,
            head_ref="feature",
            head_repository="shop/warehouse",
            base_sha="b" * 40,
            base_ref="main",
            merge_sha=None,
            author="ada",
            fork=False,
            url="",
        )
    )
    comments: list[PullComment] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    dispatched: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    failing: dict[str, BotError] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    checks: list[CheckRun] = field(default_factory=list)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise self.failing[name]

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        self.waits.append(seconds)
        return nullcontext()

    def get_permission(self, login: str) -> Permission:
        self._call("permission")
        return self.role

    def get_pull(self, number: int, *, settle: bool = False) -> PullRequest:
        self._call("get_pull")
        return self.pull

    def list_comments(self, number: int, *, first_page: int = 1) -> Any:
        self._call("list_comments")
        return iter(self.comments)

    def my_login(self) -> str:
        self._call("my_login")
        return ME

    def create_comment(self, number: int, body: str, **_: Any) -> PullComment:
        self._call("create_comment")
        self.say(body)
        return self.comments[-1]

    def update_comment(self, comment_id: int, body: str) -> PullComment:
        self._call("update_comment")
        self.comments[comment_id - 1] = replace(self.comments[comment_id - 1], body=body)
        return self.comments[comment_id - 1]

    def fold_comment(self, comment: PullComment) -> None:
        self._call("fold_comment")
        self.comments[comment.id - 1] = replace(self.comments[comment.id - 1], minimized=True)

    def write_check(self, check: CheckRun) -> None:
        self._call("write_check")
        self.checks.append(check)

    def add_reaction(self, comment_id: int, content: Reaction) -> None:
        self._call(content)

    def dispatch_workflow(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        self._call("dispatch")
        self.dispatched.append((workflow, ref, dict(inputs)))

    def say(self, body: str, author: str = ME) -> None:
        when = "2026-08-22T10:00:00Z"
        self.comments.append(
            PullComment(
                id=len(self.comments) + 1,
                number=self.pull.number,
                body=body,
                author=author,
                created_at=when,
                updated_at=when,
                url=f"https://github.com/shop/warehouse/pull/{self.pull.number}#issuecomment-1",
            )
        )

    @property
    def reply(self) -> str:
        return self.comments[-1].body


def machine_at(now: datetime) -> Machine:
    """A machine whose clock stands still, and which has nothing else."""
    out = io.StringIO()
    return Machine(
        environ={},
        directory=Path(),
        out=out,
        log=out,
        python="python",
        worker_user=None,
        temporary=Path(),
        monotonic=lambda: 0.0,
        utc_now=lambda: now,
        sleep=lambda seconds: None,
        token=lambda: "0" * 64,
        jitter=lambda: 0.0,
    )


def publisher_of(
    github: Memory,
    *,
    settings: ActionSettings | None = None,
    machine: Machine | None = None,
    template: CommentViewContext | None = None,
) -> HandlerPublisher:
    """A publisher of the pull request in `github`."""
    machine = machine or machine_at(NOON)
    template = template or make_context(marker=None)
    number = github.pull.number
    commands = WorkflowCommands(machine.out, token=machine.token)
    return HandlerPublisher(
        settings=settings or ActionSettings(inputs=ActionInputs(), runner=RUNNER),
        machine=machine,
        commands=commands,
        outputs=ActionStepOutputs(None, delimiter=machine.token, warn=commands.annotate_warning),
        summary=ActionStepSummary(None, warn=commands.annotate_warning),
        redactor=Redactor(),
        number=number,
        github=github,  # it serves what these runs ask for
        sticky=GitHubStickyComment(
            github,
            number=number,
            key=template.project,
            monotonic=machine.monotonic,
            now=machine.format_timestamp,
        ),
        template=template,
        key=template.project,
    )


def context_of(
    publisher: HandlerPublisher, github: object, worker: object = None
) -> HandlerContext:
    """What a handler works with: a GitHub and a worker that serve what its run asks for."""
    given: Any = (github, worker)
    return HandlerContext(publisher.settings, publisher, *given)
