"""What the bot knows and the worker does not: where we are, who asks, and what may happen next."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass
from urllib.parse import quote

from ci_bot.bot.report.markdown_text import SafeMarkdown, make_code_span, make_link, make_table_cell
from ci_bot.protocol.base import Sha, Timestamp, shorten_plan_id
from ci_bot.protocol.comment import Marker, Phase, PlanHistoryEntry
from ci_bot.protocol.plan import Decision
from ci_bot.protocol.rules import RULES


@dataclass(frozen=True, kw_only=True)
class ApplyConditionView:
    """One requirement of the apply gate, shown as met or not before anybody types a command.

    `next_command` says in a few words how to meet it; a command in it is between backticks.
    """

    label: str
    met: bool
    next_command: str | None = None


@dataclass(frozen=True, kw_only=True)
class DecisionOverrideView:
    """A maintainer's approval of a blocked plan; it stays visible, and is valid for one plan."""

    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProgressView:
    """The position of a running apply; `seconds_left` is None until a first batch was measured."""

    done: int
    total: int
    seconds_left: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class ApplyRefusalView:
    """The reason why the bot itself refused a request, if it asked no worker."""

    reason_code: str
    message: str
    hint: str | None = None
    reviewed_sets_gone: bool = False


@dataclass(frozen=True, kw_only=True)
class CommentViewContext:
    """Everything in a comment that comes from the bot.

    Attributes:
        project: The key that distinguishes the projects of one repository.
        environment: The environment that the pull request owns.
        now: When this text is rendered, UTC.
        phase: Which state of the comment to show.
        marker: The hidden first line; none on a laptop and in step summaries of other activities.
        repository: `owner/name`; None outside of GitHub, and then nothing is linked.
        report_url: The artifact with the complete report.
        rules_url: The address of the rules' pages, for the version that runs; None if it is not
            known, and then no rule is linked.
        command: What a comment command starts with.
        options: The projects, as options of `ci-bot`; for commands to copy outside of GitHub.
        plan_options: The options of the plan, each after a blank.
        apply_workflow: File name of the workflow that takes `mode` and `pr-number`, for commands to
            copy.
        conditions: The gate that an apply has to pass.
        fork: Whether the pull request comes from a fork; then no warehouse was asked.
        new_head: The commit that is being planned, in phase `planning`.
        new_base: The base branch that the pull request has now, if it was changed since the last
            review.
        others: Author and address of each comment that carries our mark but that somebody else, or
            an earlier token, wrote.
        base_moves: The base branch's commit at the review and the one now, if the plan is not the
            reviewed one; None if they were not compared.
        judged: The decision of the apply's own review of the plan; this one counts.
        said: The decision that the comment showed for it before.
        each_plan: Whether each plan has a comment of its own.
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
        """The page that explains each part of a comment; it is beside the pages of the rules."""
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
        """Returns the comment, or on a laptop the shell line, to apply this plan and no other."""
        if self.repository is None:
            environment = shlex.quote(self.environment)
            plan = f" --plan-id {shorten_plan_id(plan_id)}" if plan_id else ""
            return (
                f"ci-bot apply {self.options} --environment {environment}{plan}{self.plan_options}"
            )
        return f"{self.command} apply {shorten_plan_id(plan_id)}".rstrip()

    @property
    def cleanup_comment(self) -> str:
        """The comment that removes an open pull request's environment."""
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


# Links into GitHub, built from the bot's facts; the worker supplies only paths.


_SHORT_SHA = 7
_FAMILY = re.compile(r"R\d{2}-")


class CommentLinks:
    """Builds the links of one comment. Without a repository each link is only its label."""

    def __init__(self, context: CommentViewContext, head: Sha | None = None) -> None:
        self._root = (
            f"{context.server_url.rstrip('/')}/{context.repository}" if context.repository else None
        )
        self._head = head
        self._rules = context.rules_url

    def link_file(
        self, path: str | None, line: int | None = None, label: str | None = None
    ) -> SafeMarkdown:
        """Links the file at the reviewed commit; `label` defaults to the path with its line."""
        where = f"{path}:{line}" if path and line else path or ""
        return make_link(make_table_cell(label or where), self.file_url(path, line))

    def file_url(self, path: str | None, line: int | None = None) -> str | None:
        """Returns the file's URL; None for a path out of the repository (browsers resolve dots)."""
        if not (self._root and self._head and path):
            return None
        if path.startswith("/") or posixpath.normpath(path) != path or path.startswith(".."):
            return None
        quoted = quote(path, safe="/", errors="replace")
        anchor = f"#L{line}" if line else ""
        return f"{self._root}/blob/{self._head}/{quoted}{anchor}"

    def link_rule(self, id_: str) -> SafeMarkdown:
        """Returns a rule's id, linked to its page; the linter's rules have no page."""
        known = self._rules is not None and id_ in RULES
        return make_link(make_table_cell(id_), f"{self._rules}/{id_}.md" if known else None)

    def link_rule_reason(self, id_: str, is_only: bool = True) -> SafeMarkdown:
        """Returns "why", linked to the page of a rule, or the rule's id if there is no page.

        Args:
            is_only: Whether no other rule is named beside it. If there are several, each is named
                in words.
        """
        if self._rules is None or id_ not in RULES:
            return make_table_cell(id_)
        # The ids of the oldest rules begin with the number of their family: `R04-column-dropped`.
        label = "why" if is_only else _FAMILY.sub("", id_).replace("-", " ")
        return make_link(SafeMarkdown(label), f"{self._rules}/{id_}.md")

    def link_commit_range(self, before: str, after: str) -> SafeMarkdown:
        """Returns two commits, linked to the comparison of both."""
        ends = (make_code_span(before[:_SHORT_SHA]), make_code_span(after[:_SHORT_SHA]))
        label = SafeMarkdown(" → ".join(ends))
        return make_link(label, f"{self._root}/compare/{before}...{after}" if self._root else None)

    def link_commit(self, sha: Sha | None) -> SafeMarkdown:
        """Returns the short form of a commit, linked."""
        if not sha:
            return SafeMarkdown("–")
        url = f"{self._root}/commit/{sha}" if self._root else None
        return make_link(make_code_span(sha[:_SHORT_SHA]), url)

    def link_run(self, name: str | None) -> SafeMarkdown:
        """Returns a workflow run by its id, with or without the attempt ("8812.2"), linked."""
        if not name:
            return SafeMarkdown("–")
        run_id = name.partition(".")[0]
        url = f"{self._root}/actions/runs/{run_id}" if self._root and run_id.isdigit() else None
        return make_link(make_table_cell(name), url)


@dataclass(frozen=True)
class RenderedText:
    """A finished text, and the names of the sections that were shortened to fit the budget."""

    text: str
    cut: list[str]
