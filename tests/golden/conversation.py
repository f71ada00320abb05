"""The conversation of one pull request, written by the bot's own code from recorded documents.

GitHub is in memory and the clock stands still; who publishes, which states there are, what the
comment remembers and what an apply still needs is all as in a run.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ci_bot.bot.actions import activities
from ci_bot.bot.actions.inputs import ActionInputs, ActionSettings
from ci_bot.bot.handlers import apply, apply_evidence, cleanup, review
from ci_bot.bot.handlers.own_review import (
    confirm_comment_marker_by_own_review,
    find_why_own_review_has_other_plan,
)
from ci_bot.bot.handlers.publisher import REPORT_DIRECTORY, HandlerPublisher, make_comment_context
from ci_bot.bot.report.markdown.comments import render_apply_comment
from ci_bot.bot.report.markdown.marker import CommentMarkerFacts
from ci_bot.bot.report.model.context import CommentViewContext, ProgressView, RenderedText
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.cleanup_report import CleanupDocument
from ci_bot.protocol.comment import Marker, Phase
from ci_bot.protocol.messages import Progress
from ci_bot.protocol.review_report import Report
from tests.golden.pull_requests import NUMBER
from tests.publishing import RUNNER, Memory, machine_at, publisher_of

MORNING = datetime(2014, 1, 1, 8, tzinfo=timezone.utc)
# As long as this an apply has run when the comment shows the recorded step.
APPLYING_SECONDS = 60.0


@dataclass
class _GitHub(Memory):
    """GitHub with the artifact that the last review left."""

    artifact: bytes = b""

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        return self.artifact


class Conversation:
    """Pull request 7 of octo/flights. Each method is a run of its own, five minutes after the last.

    Attributes:
        comment: The bot's comment as it is now.
    """

    def __init__(
        self, first: Report, inputs: ActionInputs | None = None, *, fork: bool = False
    ) -> None:
        pull = replace(
            Memory().pull,
            number=NUMBER,
            head_sha=first.head_sha or "",
            base_sha=first.base_sha or "",
        )
        self._github = _GitHub(pull=pull)
        self._runs = 0
        self._inputs = inputs or ActionInputs()
        self._fork = fork

    @property
    def has_comment(self) -> bool:
        """Whether the bot has said anything."""
        return bool(self._github.comments)

    @property
    def comment(self) -> str:
        return self._github.comments[0].body

    def announce(self, head: str) -> Conversation:
        """Somebody has pushed, and the new commit is being planned."""
        with self._run() as publisher:
            review.announce_planning_in_comment(head, publisher)
        return self

    def review(self, report: Report) -> Conversation:
        """A review has ended."""
        activity = activities.Review(
            number=NUMBER,
            head_sha=report.head_sha,
            base_sha=report.base_sha,
            merge_sha=report.merge_sha,
            untrusted="the head branch is in a fork" if self._fork else None,
        )
        with self._run() as publisher:
            review.publish_review(report, activity, publisher.settings, publisher)
            folder = Path(publisher.settings.runner.workspace) / REPORT_DIRECTORY
            self._github.artifact = _zipped(folder / "report.json")
        return self

    def applying(self, own: Report, step: Progress | None, phase: Phase) -> Conversation:
        """An apply is building, or was told to stop there (`phase` is `cancelled`)."""

        def render(context: CommentViewContext, budget: int | None) -> RenderedText:
            return render_apply_comment(None, context, budget, review=own)

        with self._run() as publisher:
            marker = self._taken_over(own, publisher)
            progress = None
            if step is not None and step.done and step.total:
                left = APPLYING_SECONDS / step.done * (step.total - step.done)
                progress = ProgressView(
                    done=step.done, total=step.total, seconds_left=left, message=step.message
                )
            publisher.try_post(
                phase, CommentMarkerFacts.from_marker(marker), render, progress=progress
            )
        return self

    def apply(self, own: Report, document: ApplyDocument) -> Conversation:
        """An apply has ended."""
        with self._run() as publisher:
            marker = self._taken_over(own, publisher)
            apply_evidence.publish_apply(document, publisher, marker)
        return self

    def refuse(self, own: Report) -> Conversation:
        """An apply has found another plan than the one that the comment names."""
        with self._run() as publisher:
            marker = self._marker(publisher)
            document = find_why_own_review_has_other_plan(own, marker, publisher, self._github)
            assert document is not None
            apply_evidence.publish_apply(document, publisher, marker)
        return self

    def clean_up(self, document: CleanupDocument) -> Conversation:
        """The pull request was merged, and its cleanup has ended."""
        with self._run() as publisher:
            publisher.template = replace(publisher.template, merged=True)
            cleanup.publish_cleanup(document, publisher)
        return self

    def _taken_over(self, own: Report, publisher: HandlerPublisher) -> Marker:
        marker = self._marker(publisher)
        apply.show_own_review_in_run(own, marker, publisher)
        return confirm_comment_marker_by_own_review(marker, own)

    def _marker(self, publisher: HandlerPublisher) -> Marker:
        marker = publisher.read_marker()
        assert marker is not None
        return marker

    @contextmanager
    def _run(self) -> Iterator[HandlerPublisher]:
        self._runs += 1
        with tempfile.TemporaryDirectory() as workspace:
            runner = replace(
                RUNNER, repository="octo/flights", workspace=workspace, run_id=8_800 + self._runs
            )
            settings = ActionSettings(inputs=self._inputs, runner=runner)
            machine = machine_at(MORNING + self._runs * timedelta(minutes=5))
            yield publisher_of(
                self._github,
                settings=settings,
                machine=machine,
                template=make_comment_context(settings, NUMBER, machine),
            )


def _zipped(path: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.write(path, path.name)
    return buffer.getvalue()
