"""What a review is asked for, and of which commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ci_bot.bot.decision import TeamLimits
from ci_bot.bot.policy import ChangeAuthors
from ci_bot.protocol.base import Sha
from ci_bot.protocol.cost import Price
from ci_bot.protocol.environment import EnvironmentName
from ci_bot.protocol.messages import BaselineChoice, Owner
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.restatements import RestatementWish


@dataclass(frozen=True, kw_only=True)
class ReviewCommits:
    """The commits of a review; null if they are unknown (a laptop without a base).

    The branches are those of the pull request; a laptop has its own git to ask for its base.
    `working` is the tree of a laptop's files where some of them are not committed.
    """

    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    working: str | None = None
    head_branch: str | None = None
    base_branch: str | None = None

    @property
    def reviewed_commit(self) -> str | None:
        """What is reviewed: the merge commit, a laptop's files, or the head."""
        return self.merge or self.working or self.head

    def base_names(self) -> list[str]:
        """How `git:` in a selection of models may call the base of the pull request."""
        if self.base_branch is None:
            return []
        names = [self.base_branch, f"origin/{self.base_branch}"]
        return [*names, self.base] if self.base else names


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """What a review is asked for.

    Attributes:
        limits: Those that an input sets; the policy's count where it sets none.
        before_apply: Whether an apply of the same run follows.
        cache_dir: Where the base cache is; None if none is to be read.
        find_authors: Asks GitHub who wrote the change; None if GitHub cannot be asked.
        restated_by: The pull requests whose recorded restatements count; None: the owner's own.
        wish: A restatement that is asked for.
        no_lighter: Why the policy makes nothing lighter, as a sentence; None if it may.
    """

    environment: EnvironmentName
    owner: Owner
    commits: ReviewCommits
    baseline: BaselineChoice = "auto"
    flags: GivenFlags = field(default_factory=GivenFlags)
    start: str | None = None
    end: str | None = None
    pinned: bool = False
    execution_time: str | None = None
    limits: TeamLimits = field(default_factory=TeamLimits)
    executor_hour_price: Price | None = None
    before_apply: bool = False
    conflict: bool = False
    fork: bool = False
    python_path: tuple[str, ...] = ()
    cache_dir: str | None = None
    no_lighter: str | None = None
    restated_by: tuple[int, ...] | None = None
    wish: RestatementWish | None = None
    find_authors: Callable[[], ChangeAuthors] | None = None
