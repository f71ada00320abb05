"""What the bot knows and the worker does not: where we are, who asks, and what may happen next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ci_bot.protocol.base import Sha, Timestamp, shorten_plan_id
from ci_bot.protocol.comment import Marker, Phase, PlanHistoryEntry
from ci_bot.protocol.plan import Decision


@dataclass(frozen=True, kw_only=True)
class ApplyConditionView:
    """One requirement of the apply gate, shown ticked or not before anybody types a command.

    `next_command` says how to meet it, in a few words; a command in it stands between backticks.
    """

    label: str
    met: bool
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True)
class DecisionOverrideView:
    """A maintainer let a blocked plan through; it stays visible and belongs to one plan only."""

    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProgressView:
    """Where a running apply is. `seconds_left` is null until a first batch was measured."""

    done: int
    total: int
    seconds_left: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class ApplyRefusalView:
    """Why the bot itself refused a request, if no worker was ever asked."""

    reason_code: str
    message: str
    hint: str | None = None
    reviewed_sets_gone: bool = False


@dataclass(frozen=True, kw_only=True)
class CommentViewContext:
    """Everything in a comment that comes from the bot.

    Args:
        project: The key that tells projects in one repository apart.
        environment: The environment that the pull request owns.
        now: When this text is rendered, UTC.
        phase: Which state of the comment to show.
        marker: The hidden first line; none on a laptop and in step summaries of other activities.
        repository: `owner/name`; none outside of GitHub, and then nothing is linked.
        report_url: The artifact with the complete report.
        rules_url: Where the pages of the rules are, for the version that runs; none if nobody
            knows, and then no rule is linked.
        command: What a comment command starts with.
        options: The projects, as options of `ci-bot`; for commands to copy outside of GitHub.
        plan_options: Those of the plan, each after a blank.
        apply_workflow: File name of the workflow that takes `mode` and `pr-number`, for commands to
            copy.
        conditions: The gate that an apply has to pass.
        fork: The pull request comes from a fork, so no warehouse was asked.
        new_head: The commit that is being planned, in phase `planning`.
        new_base: The base branch that the pull request has been given since its last review.
        others: Author and address of comments that carry our mark and that others wrote, or an
            earlier token.
        base_moves: The base branch's commit of the review and that of now, of a plan that is not
            the reviewed one; None if they were not compared.
        judged: What the apply's own review of the plan decided; that counts.
        said: What the comment had said of it.
        each_plan: Each plan has a comment of its own.
    """

    project: str
    environment: str
    now: Timestamp
    phase: Phase
    marker: Marker | None = None
    repository: str | None = None
    server_url: str = "https://github.com"
    pr_number: int | None = None
    base_name: str | None = None
    run_url: str | None = None
    report_url: str | None = None
    rules_url: str | None = None
    command: str = "/sqlmesh"
    options: str = "--project ."
    plan_options: str = ""
    apply_workflow: str | None = None
    conditions: tuple[ApplyConditionView, ...] = ()
    override: DecisionOverrideView | None = None
    progress: ProgressView | None = None
    refusal: ApplyRefusalView | None = None
    fork: bool = False
    new_head: Sha | None = None
    new_base: str | None = None
    others: tuple[tuple[str, str], ...] = ()
    base_moves: tuple[str, str] | None = None
    judged: Decision | None = None
    said: Decision | None = None
    each_plan: bool = False
    merged: bool | None = None
    rescued: bool = False

    @property
    def guide_url(self) -> str | None:
        """The page that explains each part of a comment; it lies beside the pages of the rules."""
        return self._make_page_url("reading-the-comment.md")

    @property
    def owners_url(self) -> str | None:
        """The page that says who may accept a finding, and how."""
        return self._make_page_url("policy.md#owners-accept-findings")

    @property
    def state_url(self) -> str | None:
        """The page that says how a review gets prod's state."""
        return self._make_page_url("installation.md#step-by-step")

    def _make_page_url(self, page: str) -> str | None:
        return f"{self.rules_url.rpartition('/')[0]}/{page}" if self.rules_url else None

    @property
    def plan_command(self) -> str:
        """The comment, or on a laptop the shell line, that asks for a plan."""
        if self.repository is None:
            environment = shlex.quote(self.environment)
            return f"ci-bot review {self.options} --environment {environment}{self.plan_options}"
        return f"{self.command} plan"

    def apply_command(self, plan_id: str | None) -> str:
        """The comment, or on a laptop the shell line, that has this plan applied, and no other."""
        if self.repository is None:
            environment = shlex.quote(self.environment)
            plan = f" --plan-id {shorten_plan_id(plan_id)}" if plan_id else ""
            return (
                f"ci-bot apply {self.options} --environment {environment}{plan}{self.plan_options}"
            )
        return f"{self.command} apply {shorten_plan_id(plan_id)}".rstrip()

    @property
    def cleanup_comment(self) -> str:
        """The comment that has an open pull request's environment removed."""
        return f"{self.command} cleanup"

    @property
    def cleanup_command(self) -> str:
        """A shell line that starts the cleanup again."""
        if self.apply_workflow and self.pr_number is not None:
            workflow, number = shlex.quote(self.apply_workflow), self.pr_number
            return f"gh workflow run {workflow} -f mode=cleanup -f pr-number={number}"
        return f"ci-bot cleanup {self.options} --environment {shlex.quote(self.environment)}"

    @property
    def history(self) -> list[PlanHistoryEntry]:
        """Earlier plans of this pull request, oldest first."""
        return self.marker.history if self.marker else []


@dataclass(frozen=True)
class RenderedText:
    """A finished text, and the names of the sections that the budget shortened."""

    text: str
    cut: list[str]
