"""All that one run publishes: the sticky comment, the step summary, the outputs, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ci_bot.bot.actions import (
    ActionSettings,
    ActionStepOutputs,
    ActionStepSummary,
    WorkflowCommands,
)
from ci_bot.bot.github import GitHub, GitHubStickyComment, MarkedComment, PublishedComment
from ci_bot.bot.report import (
    COMMENT_BYTES,
    ApplyEnd,
    CarriedCommentReview,
    CommentMarkerFacts,
    CommentViewContext,
    DocumentTexts,
    RenderedText,
    ReviewSource,
    decode_comment_marker,
    list_plans_before_in_comment,
    make_check_run_markdown,
    make_sarif_view_of_report,
    render_html_page_of_document,
    render_prose,
    words,
    write_within,
)
from ci_bot.errors import BotError
from ci_bot.host import Machine
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import SCHEMA_VERSION, Contract, Failure, Sha, shorten_plan_id
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import Marker, Phase
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.review_report import Report
from ci_bot.redaction import Redactor

SUMMARY_BYTES = 1_000_000
# Not hidden: actions/upload-artifact leaves hidden directories out.
REPORT_DIRECTORY = "ci-bot-report"
MAX_HISTORY = 20
_MAX_ANNOTATIONS = 10
# The longest wait for GitHub, in seconds, for a comment that will be written again.
_PASSING_SECONDS = 5.0
Render = Callable[[CommentViewContext, int | None], RenderedText]


@dataclass
class HandlerPublisher:
    """Writes for one pull request and project; `sticky` is None if it may write no comment.

    `own_review` is the review that this run itself has made. `not_replaced` is what the comment
    still shows if GitHub did not accept the result of this run. `left_newer` is whether the comment
    was left as it is, because it shows something newer than this run.
    """

    settings: ActionSettings
    machine: Machine
    commands: WorkflowCommands
    outputs: ActionStepOutputs
    summary: ActionStepSummary
    redactor: Redactor
    number: int | None
    github: GitHub | None
    sticky: GitHubStickyComment | None
    template: CommentViewContext
    key: str
    comment_url: str | None = None
    report_run: int | None = None
    own_review: Report | None = None
    not_replaced: Marker | None = None
    left_newer: bool = False
    _first: Marker | None = None
    _warned_of_others: bool = False
    _told_fold: bool = False

    @property
    def environment(self) -> EnvironmentName:
        """The environment of this pull request, by the current prefix.

        A report may show another one, if a cleanup removed that.
        """
        return EnvironmentName.for_pull_request(self.settings.prefix, self.number or 0)

    def read_marker(self) -> Marker | None:
        """Reads what an earlier run wrote into our comment; None if there is no such comment.

        Raises:
            BotError: GitHub did not answer.
        """
        found = self._find_comment()
        return found.marker if found else None

    def try_read_marker(self) -> Marker | None:
        """Reads it as `read_marker` does; if that fails, this run does not write the comment."""
        try:
            return self.read_marker()
        except BotError as error:
            self.sticky = None
            self.annotate_problem("The comment cannot be read, so it stays as it is", error)
            return None

    def read_earlier_review(self) -> CarriedCommentReview | None:
        """Returns the review in our comment, to be kept below another state."""
        found = self._find_comment()
        earlier = (
            CarriedCommentReview.from_body(found.comment.body, found.marker) if found else None
        )
        # Its secrets were removed when it was made, but this run may know more secrets than that
        # one.
        return replace(earlier, text=self.redactor.redact(earlier.text)) if earlier else None

    def get_review_below(self) -> ReviewSource:
        """Returns the review to show below another state: this run's own, else the comment's."""
        return self.own_review or self.read_earlier_review()

    def _find_comment(self) -> MarkedComment | None:
        found = self.sticky.find_comment() if self.sticky else None
        if found is not None and self._first is None:
            self._first = found.marker
        self._warn_of_others()
        return found

    def _warn_of_others(self) -> None:
        if self.sticky is None or self._warned_of_others:
            return
        for comment in self.sticky.foreign_comments:
            self._warned_of_others = True
            self.commands.annotate_warning(
                f"A comment of @{comment.author} carries the mark of these reports, too, and was "
                f"not written by this run's account, so it is not kept up to date: {comment.url} "
                "If the token was changed, delete that comment, so that nobody takes it for this "
                "one."
            )

    def post_comment(
        self,
        phase: Phase,
        facts: CommentMarkerFacts,
        render: Render,
        *,
        current_head: Sha | None = None,
        **extra: Any,
    ) -> PublishedComment | None:
        """Makes the comment show `phase`; None if no comment may, or has to, be written."""
        if self.sticky is None or self.number is None:
            return None
        before = self.read_marker()
        if before is None and phase in self._quiet_phases:
            return None
        if before is not None and phase == "planning" and self.template.each_plan:
            return None  # the comment is about another plan; it is folded once this one is made
        others = tuple((each.author, each.url) for each in self.sticky.foreign_comments)
        now = self.machine.format_timestamp()
        context = replace(self.template, phase=phase, now=now, others=others, **extra)
        marker = self._make_marker(phase, facts, before)
        rendered = render(replace(context, marker=marker), COMMENT_BYTES)
        if rendered.cut:
            # The marker names the cuts and is a part of the rendered text. So the length changes by
            # those few names, for which the budget has room.
            marker = marker.model_copy(update={"cut": rendered.cut})
            rendered = render(replace(context, marker=marker), COMMENT_BYTES)
        published = self.sticky.publish_body(rendered.text, current_head=current_head)
        self._tell_fold_failure()
        self.comment_url = published.comment.url
        return published

    @property
    def _quiet_phases(self) -> tuple[Phase, ...]:
        """The phases that begin no comment, and only replace the text of an existing one."""
        return ("planning", "no_changes") if self.settings.inputs.comment == "changes" else ()

    def _make_marker(
        self, phase: Phase, facts: CommentMarkerFacts, before: Marker | None
    ) -> Marker:
        runner = self.settings.runner
        # This run's own "planning" repeats the facts of the plan before it, but not its time.
        same = before and self._first and self._first.plan == before.plan
        made = self._first if same else before
        history = list_plans_before_in_comment(made, facts.plan, before.history if before else ())
        return Marker(
            key=self.key,
            pr=self.number or 0,
            head=facts.head,
            base=facts.base,
            merge=facts.merge,
            env=self.template.environment,
            plan=facts.plan,
            window=facts.window,
            phase=phase,
            decision=facts.decision,
            run_id=runner.run_id,
            attempt=runner.run_attempt,
            valid_at=self.machine.format_timestamp(),
            report_sha256=facts.report_sha256,
            report_run=self.report_run
            or (before.report_run if before and facts.report_sha256 else None),
            history=history[-MAX_HISTORY:],
        )

    def write_check(self, report: Report, apply_end: ApplyEnd | None = None) -> bool:
        """Writes a check of its own for this report, if the token may write one.

        It repeats what the comment says, so its absence never stops anything. There is none for a
        fork, beside a newer comment, and if the token or `checks: write` is missing.

        Args:
            apply_end: The end of an apply of the plan.

        Returns:
            Whether it was written.
        """
        if self.github is None or self.template.fork or self.left_newer:
            return False
        context = replace(self.template, now=self.machine.format_timestamp())
        check = make_check_run_markdown(report, context, apply_end=apply_end)
        if check is None:
            return False
        try:
            with self.github.limit_waits(_PASSING_SECONDS):
                self.github.write_check(check)
        except BotError as error:
            if error.reason_code == "missing_permission":
                self.commands.write_line("No check is written: the token lacks `checks: write`.")
            else:
                self.annotate_problem("The check was not written, or not all of it", error)
            return False
        return True

    def post_note(self, text: str) -> None:
        """Writes a short new comment; people are notified about it, but not about an edit."""
        if self.sticky is not None:
            self.sticky.post_note(text)

    def try_news(self, text: str) -> bool:
        """Writes a note about the current state, as `try_note`; the note before it is folded."""
        written = self._try_write(self.sticky.post_news, text) if self.sticky else False
        self._tell_fold_failure()
        return written

    def _tell_fold_failure(self) -> None:
        if self.sticky is not None and self.sticky.fold_failure is not None and not self._told_fold:
            self._told_fold = True
            why = self.sticky.fold_failure.message
            self.commands.write_line(f"An older comment is not folded: {why}")

    def keep_report_files(
        self, name: str, document: Contract, render: Render, phase: Phase
    ) -> str | None:
        """Writes the complete files; returns the SHA-256 of the JSON file.

        None if they could not be written: then an annotation says so, and the run continues.
        """
        context = replace(self.template, phase=phase, now=self.machine.format_timestamp())
        texts = DocumentTexts(
            markdown=lambda: render(context, None).text,
            page=lambda: self._render_page(document, context),
            sarif=lambda: (
                make_sarif_view_of_report(document, context)
                if isinstance(document, Report)
                else None
            ),
        )
        workspace = Path(self.settings.runner.workspace)
        try:
            written = write_within(workspace, REPORT_DIRECTORY, name, document, texts)
        except BotError as error:
            self.annotate_problem("The report has no files", error)
            return None
        self.outputs.set_output("report-path", REPORT_DIRECTORY)
        if isinstance(document, Report):
            self.outputs.set_output("sarif-path", f"{REPORT_DIRECTORY}/{name}.sarif")
        return written

    def _render_page(self, document: Contract, context: CommentViewContext) -> Iterator[str] | None:
        """Yields the pieces of its page; an apply's page has the review that it built."""
        if not isinstance(document, Report | ApplyDocument | CleanupDocument):
            return None
        review = document if isinstance(document, Report) else self.own_review
        history = list_plans_before_in_comment(self._first, review.plan_id if review else None)
        return render_html_page_of_document(document, context, review, history)

    def write_summary(self, render: Render, phase: Phase, **extra: Any) -> None:
        """Writes the comment's text, with more room, to the step's summary."""
        context = replace(self.template, phase=phase, now=self.machine.format_timestamp(), **extra)
        self.summary.append_markdown(render(context, SUMMARY_BYTES).text)

    def set_outputs_and_post(
        self, values: Mapping[str, str], document: Mapping[str, Any], post: Callable[[], bool]
    ) -> bool:
        """Sets the outputs of the step and posts; returns whether the comment shows the result.

        The outputs come first: a result must not be lost if GitHub does not answer, or if the job
        is stopped while we wait. If an output is set twice, the last value counts.
        """
        self.set_outputs(values, {**document, "reported": False})
        posted = post()
        if posted:
            self.set_outputs({}, {**document, "reported": True})
        return posted

    def set_outputs(self, values: Mapping[str, str], document: Mapping[str, Any]) -> None:
        """Sets the outputs of the step."""
        self.outputs.set_output("environment", self.template.environment)
        for name, value in values.items():
            self.outputs.set_output(name, value)
        if self.comment_url:
            self.outputs.set_output("comment-url", self.comment_url)
        self.outputs.set_json("result", {"schema_version": SCHEMA_VERSION, **document})

    def annotate_findings(self, findings: list[tuple[str, str, str | None, int | None]]) -> None:
        """Writes at most ten annotations (level, message, file, line), in the given order."""
        for level, message, path, line in findings[:_MAX_ANNOTATIONS]:
            place = {"file": path, "line": line} if path else {}
            write = (
                self.commands.annotate_error if level == "error" else self.commands.annotate_warning
            )
            write(message, **place)

    def annotate_failure(self, failure: Failure) -> None:
        """Writes the failure as an annotation: what is wrong, where, and what to do next."""
        text = f"{failure.message} {failure.hint or ''}".strip()
        self.annotate_findings([("error", text, failure.path, failure.line)])

    def annotate_problem(self, what: str, error: BotError) -> None:
        """Writes an annotation about something that did not stop the run."""
        text = f"{what}: {error.message} {error.hint or ''}".strip()
        self.commands.annotate_warning(text)

    def try_note(self, text: str) -> bool:
        """Writes a note; returns whether it did, because a failure must not stop the run."""
        return self._try_write(self.sticky.post_note, text) if self.sticky else False

    def _try_write(self, write: Callable[[str], object], text: str) -> bool:
        try:
            write(text)
        except BotError as error:
            self.annotate_problem("No note could be written", error)
            return False
        return True

    def try_post(self, *arguments: Any, **extra: Any) -> bool:
        """Posts as `post_comment`, but a failure must not lose what is already done.

        If the comment still shows something else, an annotation and the summary say so.

        Returns:
            Whether the comment shows this now; False if no comment may be written, and if it has a
            newer run's facts.
        """
        try:
            published = self.post_comment(*arguments, **extra)
        except BotError as error:
            known = self.sticky.known_comment if self.sticky else None
            self.not_replaced = known.marker if known else None
            shown = (
                f" {_describe_what_comment_shows(self.not_replaced)}" if self.not_replaced else ""
            )
            why = f"{error.message} {error.hint or ''}".strip()
            self._say_everywhere(f"The comment could not be updated: {why}{shown}")
            return False
        return self.is_shown(published)

    def is_shown(self, published: PublishedComment | None) -> bool:
        """Whether the comment shows what was posted; if it has something newer, it says so."""
        if published is None or published.action != "superseded":
            return published is not None
        self.left_newer = True
        there = decode_comment_marker(published.comment.body)
        by = f" run {there.run_id}" if there and there.run_id else " another run"
        shown = f" {_describe_what_comment_shows(there)}" if there else ""
        self._say_everywhere(
            f"The comment does not show the result of this run, because{by} has written what seems "
            f"to be newer.{shown} If that is not so, somebody has edited the comment: ask for a "
            "plan with `/sqlmesh plan`."
        )
        return False

    def _say_everywhere(self, text: str) -> None:
        self.commands.annotate_warning(text)
        self.summary.append_markdown(
            f"\n> [!WARNING]\n> {render_prose(self.redactor.redact(text))}\n"
        )

    @contextmanager
    def leave_out_if_refused(self, what: str) -> Iterator[None]:
        """Wraps what the comment shows only for a while, and the requests for it.

        It is written again later, so no request waits long. A failure is only a line of the log.

        Args:
            what: What is missing then, as a sentence without its full stop.
        """
        if self.github is None:
            return (yield)
        try:
            with self.github.limit_waits(_PASSING_SECONDS):
                yield
        except BotError as error:
            self.commands.write_line(f"{what}: {error.message}")


def _describe_what_comment_shows(marker: Marker) -> str:
    """Describes in a sentence what a comment shows."""
    decision = f"{words.DECISIONS[marker.decision]} for " if marker.decision else ""
    return f"It shows {decision}commit {shorten_plan_id(marker.head)[:7]}." if marker.head else ""


def make_project_key(settings: ActionSettings) -> str:
    """Returns the key that distinguishes the comments of several projects in one repository."""
    name = "+".join(settings.inputs.project)
    if name == ".":
        name = settings.runner.repository.rpartition("/")[2]
    return f"{name}/{settings.inputs.gateway}" if settings.inputs.gateway else name


def make_comment_context(
    settings: ActionSettings, number: int | None, machine: Machine
) -> CommentViewContext:
    """Makes the context that all states of this run's comment share."""
    runner = settings.runner
    return CommentViewContext(
        project=make_project_key(settings),
        environment=EnvironmentName.for_pull_request(settings.prefix, number or 0),
        now=machine.format_timestamp(),
        phase="planning",
        repository=runner.repository,
        server_url=runner.server_url,
        pr_number=number,
        run_url=runner.run_url,
        report_url=f"{runner.run_url}#artifacts" if runner.run_url else None,
        rules_url=runner.rules_url,
        apply_workflow="apply.yml",
        each_plan=settings.inputs.comment == "new",
    )


def make_handler_publisher_for(publisher: HandlerPublisher, number: int) -> HandlerPublisher:
    """Makes a publisher for another pull request, if the event names none (sweep, fork report)."""
    github = publisher.github
    return replace(
        publisher,
        number=number,
        sticky=GitHubStickyComment(
            github,
            number=number,
            key=publisher.key,
            monotonic=publisher.machine.monotonic,
            now=publisher.machine.format_timestamp,
            each_plan=publisher.template.each_plan,
        )
        if github is not None
        else None,
        template=make_comment_context(publisher.settings, number, publisher.machine),
        comment_url=None,
        report_run=None,
        _first=None,
    )
