"""What the judge is given besides the worker's facts: the bot's own knowledge, and the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_bot.bot.policy.comparing import PolicyChange
from ci_bot.bot.policy.weighing import Weighing


@dataclass(frozen=True)
class Limits:
    """The lines that a team draws; None means that there is none.

    `max_intervals` counts the intervals of one plan, `max_executor_hours` bounds the estimate, and
    `diff_tolerance` is the share of rows (0 to 1) that may differ from prod without a word, and
    `tolerances` is that of models which have one of their own.
    """

    max_intervals: int | None = None
    max_executor_hours: float | None = None
    diff_tolerance: float = 0.0
    tolerances: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BotFacts:
    """What the bot knows without asking a process that runs the pull request's code.

    Attributes:
        changed_files: paths of the PR's diff, relative to the repository; None where unknown.
        too_large: those of them that some rule would read, and that nobody has read.
        pull_request: this is about a pull request, whose changed files should be known.
        conflict: GitHub could not merge the PR with its base.
        code_on_load: changed files whose code runs while the project is loaded.
        removed_code: those of them that the head no longer has.
        load_known: whether it is known which files the load opened; else `code_on_load` holds every
            changed file of code.
        unread_because: why the rules on changed files have not run; None where they have.
        missing_files: what SQLMesh would load of the commit and the checkout has not.
        empty_submodules: submodules below a project that nobody has checked out.
        fork: the head branch is in another repository.
        policy_changes: how the pull request changes the team's policy.
        weighing: the policy that counts, and what is needed to weigh findings by it.
    """

    changed_files: tuple[str, ...] | None = None
    too_large: tuple[str, ...] = ()
    pull_request: bool = False
    conflict: bool = False
    code_on_load: tuple[str, ...] = ()
    removed_code: tuple[str, ...] = ()
    load_known: bool = True
    unread_because: str | None = None
    missing_files: tuple[str, ...] = ()
    empty_submodules: tuple[str, ...] = ()
    fork: bool = False
    policy_changes: tuple[PolicyChange, ...] = ()
    weighing: Weighing = field(default_factory=Weighing)
