"""What a run may be asked to do, with all that its event says of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_bot.bot.actions.comment_command import ApplyCommand, CommandLine
from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import WITH_SPARK


@dataclass(frozen=True, kw_only=True)
class Review:
    """Explain a pull request. Shas and branches are None where only its number is known.

    `untrusted` says in a sentence why there are no secrets and no comment; None where there are.
    `comment` is whether the report may be written to the pull request. `onto_default` is whether
    the event says that it is to be merged into the default branch. `retargeted`: it was given
    another base branch, and its merge commit may still be that with the former one.
    """

    number: int | None
    head_sha: str | None = None
    base_sha: str | None = None
    merge_sha: str | None = None
    head_ref: str | None = None
    base_ref: str | None = None
    untrusted: str | None = None
    comment: bool = True
    onto_default: bool = False
    retargeted: bool = False

    @property
    def dispatched(self) -> bool:
        """Whether somebody started it by hand: no event vouches for what is checked out."""
        return self.head_sha is None


@dataclass(frozen=True, kw_only=True)
class Apply:
    """Build the environment of a pull request.

    `comment_id` is the comment that asked, to be read and judged again; without one it is `command`
    that counts, and the permission of `requested_by`.
    """

    number: int
    requested_by: str
    command: ApplyCommand = field(default_factory=ApplyCommand)
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Accept:
    """Write down that the owner of a model accepts a finding: what, and who, the comment says."""

    number: int
    comment_id: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Say what building the environment will cost. For `comment_id` and `requested_by` see
    `Apply`."""

    number: int
    requested_by: str
    comment_id: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cleanup:
    """Remove the environment of a pull request. None means: ask GitHub.

    `closed` is True where the event itself says that the pull request is closed.
    `has_secrets` is False in a run that GitHub starts without secrets (`pull_request` of a fork or
    of Dependabot): if the state is out of reach then, the sweep finishes the job.
    """

    number: int
    merged: bool | None
    closed: bool | None
    has_secrets: bool = True
    head_sha: str | None = None
    comment_id: int | None = None
    requested_by: str | None = None

    @property
    def dispatched(self) -> bool:
        """Whether somebody started it by hand, perhaps for a pull request that is open."""
        return self.closed is None


@dataclass(frozen=True)
class Sweep:
    """Find and remove environments whose pull request is closed."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """Check who asked, answer, and start the workflow that does what the comment asks for.

    That workflow runs on `default_branch`; None where the event does not name it.
    """

    number: int
    comment_id: int
    author: str
    command: CommandLine
    default_branch: str | None = None


@dataclass(frozen=True, kw_only=True)
class PostForkReport:
    """Post the report that a run without write permission left as an artifact."""

    run_id: int
    head_sha: str
    head_repository: str | None
    head_branch: str | None
    fork: bool


@dataclass(frozen=True)
class Skip:
    """Nothing to do, and why: one sentence for a notice."""

    reason: str


Activity = Review | Apply | Estimate | Accept | Cleanup | Sweep | Command | PostForkReport | Skip


# What the image for reviews cannot do: it has neither Java nor Spark.


# Each of them asks Spark, builds with it or removes with it. A review may have to, too, for a
# project's unit tests; only the worker knows.
_ON_SPARK = {
    Apply: "An apply",
    Estimate: "An estimate",
    Cleanup: "A cleanup",
    Sweep: "A sweep",
}


def check(activity: Activity, *, has_spark: bool) -> None:
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
