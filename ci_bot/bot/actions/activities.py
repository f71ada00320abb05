"""What an event may ask a run to do, with all that the event says about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ci_bot.bot.actions.comment_command import ApplyCommand, CommandLine
from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import WITH_SPARK

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


class _AnyActivity:
    """The base of all activities, with the usual values."""

    # Whether it writes the files of a report into the workspace.
    writes_report: ClassVar[bool] = True

    @property
    def may_comment(self) -> bool:
        """Whether this run may write the comment of its pull request."""
        return True


@dataclass(frozen=True, kw_only=True)
class Review(_AnyActivity):
    """The activity that explains a pull request; shas and branches can be None.

    They are None if only the number is known. `untrusted` says in a sentence why there are no
    secrets and no comment; None if there are. `comment` is whether the report may be written to the
    pull request. `onto_default` is whether the event says that it will be merged into the default
    branch. `retargeted` is whether its base branch was changed; then its merge commit may still be
    the one with the former base.
    """

    number: int | None
    head_sha: Sha | None = None
    base_sha: Sha | None = None
    merge_sha: Sha | None = None
    head_ref: str | None = None
    base_ref: str | None = None
    untrusted: str | None = None
    comment: bool = True
    onto_default: bool = False
    retargeted: bool = False

    @property
    def may_comment(self) -> bool:
        return self.comment

    @property
    def was_dispatched(self) -> bool:
        """Whether a person started it: then no event proves what is checked out."""
        return self.head_sha is None


@dataclass(frozen=True, kw_only=True)
class Apply(_AnyActivity):
    """The activity that builds the environment of a pull request.

    `comment_id` is the comment that asked, which is read and checked again. Without one, `command`
    and the permission of `requested_by` count.
    """

    number: int
    requested_by: str
    command: ApplyCommand = field(default_factory=ApplyCommand)
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Accept(_AnyActivity):
    """The activity that records an owner's acceptance of a finding; the comment names both."""

    number: int
    comment_id: int


@dataclass(frozen=True, kw_only=True)
class Restate(_AnyActivity):
    """The activity that records a restatement of prod; the comment says who asks, and for what."""

    number: int
    comment_id: int


@dataclass(frozen=True, kw_only=True)
class Estimate(_AnyActivity):
    """The activity that says what building the environment will cost.

    For `comment_id` and `requested_by` see `Apply`.
    """

    number: int
    requested_by: str
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cleanup(_AnyActivity):
    """The activity that removes a pull request's environment. None means: ask GitHub.

    `closed` is True if the event itself says that the pull request is closed. `has_secrets` is
    False in a run that GitHub starts without secrets (`pull_request` of a fork or of Dependabot).
    If such a run cannot reach the state, the sweep finishes the job.
    """

    number: int
    merged: bool | None
    closed: bool | None
    has_secrets: bool = True
    head_sha: Sha | None = None
    comment_id: int | None = None
    requested_by: str | None = None

    @property
    def may_comment(self) -> bool:
        return self.has_secrets

    @property
    def was_dispatched(self) -> bool:
        """Whether a person started it, perhaps for a pull request that is open."""
        return self.closed is None


@dataclass(frozen=True)
class Sweep(_AnyActivity):
    """The activity that finds and removes environments of closed pull requests."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False


@dataclass(frozen=True)
class Drift(_AnyActivity):
    """The activity that compares prod with the default branch, and reports it in an issue."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Doctor(_AnyActivity):
    """The activity that says what the others would lack; `branch` is where it was started."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False

    branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class CommentCommand(_AnyActivity):
    """The activity that checks who asked, answers, and starts the workflow for a comment's command.

    That workflow runs on `default_branch`; None if the event does not name it.
    """

    number: int
    comment_id: int
    author: str
    command: CommandLine
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class PostForkReport(_AnyActivity):
    """The activity that posts a report from the artifact of a run without write permission."""

    number: ClassVar[None] = None

    run_id: int
    head_sha: Sha
    head_repository: str | None
    head_branch: str | None
    fork: bool


@dataclass(frozen=True)
class NothingToDo(_AnyActivity):
    """The activity of an event that asks for nothing; `reason` is one sentence for a notice."""

    number: ClassVar[None] = None

    reason: str


Activity = (
    Review
    | Apply
    | Estimate
    | Accept
    | Restate
    | Cleanup
    | Sweep
    | Doctor
    | Drift
    | CommentCommand
    | PostForkReport
    | NothingToDo
)


# What the image for reviews cannot do, because it has neither Java nor Spark.


# Each of them queries Spark, builds with it or removes with it. A review may also need Spark for a
# project's unit tests; only the worker knows that.
_ON_SPARK = {
    Apply: "An apply",
    Estimate: "An estimate",
    Cleanup: "A cleanup",
    Sweep: "A sweep",
}


def check_image_has_spark_for_activity(activity: Activity, *, has_spark: bool) -> None:
    """Checks that this image can do the activity.

    Raises:
        BadInput: it needs Spark, and this image has none.
    """
    name = _ON_SPARK.get(type(activity))
    if name and not has_spark:
        raise BadInput(
            f"{name} needs Spark, and the image for reviews has none.",
            hint=WITH_SPARK,
            reason_code="no_spark",
        )
