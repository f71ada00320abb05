"""What a run may be asked to do, with all that its event says of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ci_bot.bot.actions.comment_command import ApplyCommand, CommandLine
from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import WITH_SPARK

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha


class _AnyActivity:
    """What holds for most activities."""

    # Whether it leaves the files of a report in the workspace.
    writes_report: ClassVar[bool] = True

    @property
    def may_comment(self) -> bool:
        """Whether this run may write the comment of its pull request."""
        return True


@dataclass(frozen=True, kw_only=True)
class Review(_AnyActivity):
    """Explain a pull request. Shas and branches are None if only its number is known.

    `untrusted` says in a sentence why there are no secrets and no comment; None if there are.
    `comment` is whether the report may be written to the pull request. `onto_default` is whether
    the event says that it is to be merged into the default branch. `retargeted`: it was given
    another base branch, and its merge commit may still be that with the former one.
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
        """Whether somebody started it by hand: no event vouches for what is checked out."""
        return self.head_sha is None


@dataclass(frozen=True, kw_only=True)
class Apply(_AnyActivity):
    """Build the environment of a pull request.

    `comment_id` is the comment that asked, to be read and judged again; without one it is `command`
    that counts, and the permission of `requested_by`.
    """

    number: int
    requested_by: str
    command: ApplyCommand = field(default_factory=ApplyCommand)
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Accept(_AnyActivity):
    """Write down that the owner of a model accepts a finding: what, and who, the comment says."""

    number: int
    comment_id: int


@dataclass(frozen=True, kw_only=True)
class Restate(_AnyActivity):
    """Write down what prod is to build again after the merge: what, and who, the comment says."""

    number: int
    comment_id: int


@dataclass(frozen=True, kw_only=True)
class Estimate(_AnyActivity):
    """Say what building the environment will cost. For `comment_id` and `requested_by` see
    `Apply`."""

    number: int
    requested_by: str
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cleanup(_AnyActivity):
    """Remove the environment of a pull request. None means: ask GitHub.

    `closed` is True if the event itself says that the pull request is closed. `has_secrets` is
    False in a run that GitHub starts without secrets (`pull_request` of a fork or of Dependabot):
    if the state is out of reach then, the sweep finishes the job.
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
        """Whether somebody started it by hand, perhaps for a pull request that is open."""
        return self.closed is None


@dataclass(frozen=True)
class Sweep(_AnyActivity):
    """Find and remove environments whose pull request is closed."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False


@dataclass(frozen=True)
class Drift(_AnyActivity):
    """Compare prod with the default branch, and say what differs in one issue."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class Doctor(_AnyActivity):
    """Say what the other activities would miss. `branch` is the one that it was started on."""

    number: ClassVar[None] = None
    writes_report: ClassVar[bool] = False

    branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class CommentCommand(_AnyActivity):
    """Check who asked, answer, and start the workflow that does what the comment asks for.

    That workflow runs on `default_branch`; None if the event does not name it.
    """

    number: int
    comment_id: int
    author: str
    command: CommandLine
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class PostForkReport(_AnyActivity):
    """Post the report that a run without write permission left as an artifact."""

    number: ClassVar[None] = None

    run_id: int
    head_sha: Sha
    head_repository: str | None
    head_branch: str | None
    fork: bool


@dataclass(frozen=True)
class NothingToDo(_AnyActivity):
    """Nothing to do, and why: one sentence for a notice."""

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


# What the image for reviews cannot do: it has neither Java nor Spark.


# Each of them asks Spark, builds with it or removes with it. A review may have to, too, for a
# project's unit tests; only the worker knows.
_ON_SPARK = {
    Apply: "An apply",
    Estimate: "An estimate",
    Cleanup: "A cleanup",
    Sweep: "A sweep",
}


def check_image_has_spark_for_activity(activity: Activity, *, has_spark: bool) -> None:
    """Whether this image can do what was asked for.

    Raises:
        BadInput: it needs Spark, and there is none.
    """
    name = _ON_SPARK.get(type(activity))
    if name and not has_spark:
        raise BadInput(
            f"{name} needs Spark, and the image for reviews has none.",
            hint=WITH_SPARK,
            reason_code="no_spark",
        )
