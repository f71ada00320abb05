"""The parts of a plan as a reader sees them: changes, backfill, stages, lineage, checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, get_args

from pydantic import Field

from ci_bot.protocol.base import (
    Contract,
    Count,
    FilePath,
    Line,
    Name,
    PlanId,
    Seconds,
    Text,
    Timestamp,
)
from ci_bot.protocol.cost import Accuracy, Currency, ModelEstimate

TESTS_HINT = "`sqlmesh test` shows what they expected."

ChangeType = Literal["added", "removed", "direct", "indirect", "metadata"]

Category = Literal[
    "breaking",
    "non_breaking",
    "forward_only",
    "indirect_breaking",
    "indirect_non_breaking",
    "metadata",
    "uncategorized",
]

BackfillAction = Literal["full_refresh", "recreate_view", "incremental", "seed"]

Severity = Literal["blocker", "high", "medium", "low", "info"]
# The heaviest first.
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

Decision = Literal["go", "review", "no_go", "no_changes"]


class ColumnChange(Contract):
    """A column that a change drops, adds or gives another type.

    `before` is null if the column did not exist, `after` if it does not exist any more.
    """

    name: Name
    before: Name | None
    after: Name | None
    readers: list[Name] = Field(
        default_factory=list, description="Models of the new project that still read this column."
    )


class Change(Contract):
    """One model whose snapshot differs from prod's."""

    model: Name
    change: ChangeType
    category: Category | None
    kind: Name = Field(description="SQLMesh's name of the model kind, e.g. FULL.")
    path: FilePath | None = Field(description="File, relative to the repository's root.")
    owner: Name | None = None
    tags: list[Name] = Field(default_factory=list)
    fingerprint: Name | None = Field(
        default=None,
        description="Of the model and of the data that it reads; null where it is removed.",
    )
    diff: Text | None = Field(default=None, description="Unified diff of the definition.")
    columns: list[ColumnChange] = Field(default_factory=list)
    readers: list[Name] = Field(
        default_factory=list, description="Direct readers of a removed model that remain."
    )
    statements_changed: bool = Field(
        default=False, description="A statement before or after the query differs."
    )
    insert_overwrite: bool = Field(
        default=False,
        description="An INCREMENTAL_UNMANAGED model that overwrites partitions.",
    )
    from_base: bool = Field(
        default=False,
        description="The difference comes from the base branch, which prod has not caught up with.",
    )
    lies_elsewhere: bool = Field(
        default=False,
        description="Removed, and no model of the project lies in its schema: the schema is given "
        "up, or belongs to another project on the same state.",
    )
    also_in: list[Name] = Field(
        default_factory=list,
        description="Other open pull requests whose environments change this model as well.",
    )


class Backfill(Contract):
    """What one model's table needs so that the environment is complete."""

    model: Name
    kind: Name
    action: BackfillAction
    start: Timestamp | None
    end: Timestamp | None = Field(description="Exclusive.")
    intervals: Count
    batches: Count
    preview: bool = Field(description="Built into a __dev table that prod never reads.")
    reused_in_prod: bool = Field(description="A merge needs no second backfill of this table.")
    table: Name


class Restatement(Contract):
    """A restated range of one model, and the other environments whose data it clears."""

    model: Name
    start: Timestamp
    end: Timestamp
    environments: list[Name] = Field(default_factory=list)


class EnvironmentStatement(Contract):
    """A before_all or after_all statement that runs around the plan."""

    when: Literal["before_all", "after_all"]
    sql: Line
    change: Literal["added", "removed", "unchanged"]


class Stage(Contract):
    """One complete stage of the plan's execution: nothing is left out."""

    stage: Name
    title: Line
    items: list[Line] = Field(default_factory=list)


class LineageNode(Contract):
    model: Name
    change: ChangeType | None


class Lineage(Contract):
    """The changed models with their readers; an edge points from the read model to its reader."""

    nodes: list[LineageNode] = Field(default_factory=list)
    edges: list[tuple[Name, Name]] = Field(default_factory=list)


class StatementEffect(Contract):
    """What a SQL statement does to an object: which verb, and the name part by part."""

    action: Name
    target: list[Name]


class Finding(Contract):
    """What a rule found. Rule, model, path and subject identify it; sentences may change."""

    rule: Name
    severity: Severity
    model: Name | None = None
    path: FilePath | None = None
    subject: Line | None = Field(
        default=None,
        description="What of the model or the file: a column, a call at its place, a statement. "
        "Null: the whole of it.",
    )
    line: Count | None = None
    evidence: Line
    clears_when: Line | None = None
    effect: StatementEffect | None = Field(
        default=None, description="Of a statement that does something to a named object."
    )


class LintCheck(Contract):
    status: Literal["passed", "failed", "warnings", "off", "not_run"]
    errors: Count = 0
    warnings: Count = 0
    findings: list[Finding] = Field(default_factory=list)


TestOnBase = Literal["passed", "failed", "absent", "unknown"]


class TestFailure(Contract):
    __test__ = False  # the name is the field's, not a test case for pytest

    name: Name
    model: Name | None = None
    path: FilePath | None = None
    message: Text
    cause: Line | None = Field(default=None, description="What went wrong, in one sentence.")
    on_base: TestOnBase = Field(
        default="unknown",
        description="How the same test ends on the base branch; `absent` where it has none.",
    )
    touched: bool | None = Field(
        default=None,
        description="Whether the pull request changes the test, its model, or what that reads.",
    )


class TestsCheck(Contract):
    """Unit tests; `none` if the project has none: zero tests are no success."""

    __test__ = False

    status: Literal["passed", "failed", "none", "not_run"]
    run: Count = 0
    failed: Count = 0
    seconds: Seconds = 0.0
    failures: list[TestFailure] = Field(default_factory=list)
    not_run_because: Line | None = None

    @property
    def failed_before(self) -> int:
        """How many of the failing tests also fail on the base branch."""
        return len({(f.path, f.name) for f in self.failures if f.on_base == "failed"})


class AuditsCheck(Contract):
    """Audits on the changed models. A review cannot run them: they need the data."""

    status: Literal["not_run", "passed", "failed"]
    blocking: Count = 0
    non_blocking: Count = 0
    not_run_because: Line | None = None


class TableDiffCheck(Contract):
    status: Literal["not_run", "compared"]
    not_run_because: Line | None = None


class FormatCheck(Contract):
    """Whether `sqlmesh format` would change the SQL files that the pull request touches."""

    status: Literal["passed", "needs_format", "not_run"] = "not_run"
    checked: Count = 0
    left_out: Count = Field(default=0, description="Touched files beyond those that were checked.")
    files: list[Name] = Field(default_factory=list)


CheckStatus = Literal["ok", "warn", "fail", "not_run"]


class ProjectCheck(Contract):
    """One part of the project or its surroundings, and its state.

    `fix` says what to do, and is null if there is nothing to do.
    """

    name: Name
    status: CheckStatus
    message: Line
    fix: Line | None = None


class Checks(Contract):
    project: list[ProjectCheck] = Field(
        default_factory=list, description="Configuration, directories, versions, connections."
    )
    formatting: FormatCheck = Field(default_factory=FormatCheck)
    lint: LintCheck
    tests: TestsCheck
    audits: AuditsCheck
    table_diff: TableDiffCheck


def make_unrun_checks(reason: str) -> Checks:
    """Makes the checks of a review that ran none, each with the reason."""
    return Checks(
        lint=LintCheck(status="not_run"),
        tests=TestsCheck(status="not_run", not_run_because=reason),
        audits=AuditsCheck(status="not_run", not_run_because=reason),
        table_diff=TableDiffCheck(status="not_run", not_run_because=reason),
    )


class ModelRange(Contract):
    """A range of time in one model's table."""

    model: Name
    start: Timestamp
    end: Timestamp = Field(description="Exclusive.")


Confidence = Literal["high", "medium", "low", "unknown"]


class Cost(Contract):
    """The expected work, as far as it is known; unknown is null, never 0.

    If some tables have no recorded run, the hours and the price are those of the other tables: a
    lower bound. Views are not counted.
    """

    intervals: Count
    batches: Count
    tables_rebuilt: Count
    tables: Count = Field(default=0, description="Tables that are built.")
    unknown: list[Name] = Field(
        default_factory=list, description="Those of them without a recorded run."
    )
    executor_hours_low: Seconds | None = None
    executor_hours_mid: Seconds | None = None
    executor_hours_high: Seconds | None = None
    price: Seconds | None = Field(default=None, description="Of the middle estimate.")
    currency: Currency | None = Field(default=None, description="ISO 4217; null without a price.")
    confidence: Confidence = "unknown"
    basis: Line
    models: list[ModelEstimate] = Field(
        default_factory=list, description="The known tables, the dearest first."
    )
    unneeded: list[Name] = Field(
        default_factory=list,
        description="Tables among them that are rebuilt although they read nothing that changes.",
    )
    unneeded_hours: Seconds | None = Field(
        default=None, description="What the known ones of those cost; null: none is known."
    )
    reused: Count = Field(
        default=0, description="Tables of prod that are read as they are, and not built again."
    )
    reused_hours: Seconds | None = Field(
        default=None,
        description="What building the known ones of them over the plan's window would cost; null: "
        "none is known.",
    )
    accuracy: Accuracy | None = Field(
        default=None, description="Of earlier estimates; null with fewer than five to tell of."
    )

    def find_hours_above(self, limit: float | None) -> float | None:
        """Returns the expected executor-hours if they are known and above a limit; else None."""
        middle = self.executor_hours_mid
        return middle if limit is not None and middle is not None and middle > limit else None


# Kinds without a history of their own: each run of prod computes all of their rows.
COMPUTED_WHOLE = frozenset({"FULL", "VIEW", "EMBEDDED"})


class ProdPlan(Contract):
    """The same head planned read-only against prod: what a merge would do."""

    changes: Count
    backfill: list[Backfill] = Field(
        description="What prod would still have to build if this plan were applied before."
    )
    full_backfill: list[Backfill] = Field(
        default_factory=list,
        description="What prod has to build in all, whatever an environment holds of it already.",
    )
    next_run: list[Backfill] = Field(
        default_factory=list,
        description="Forward-only tables and views that keep no history: a merge builds nothing of "
        "them, and prod's next run computes them whole.",
    )
    cost: Cost | None = Field(
        default=None,
        description="Of the changed models, if they were merged without an apply; prod's next run "
        "of those that it computes whole is in it.",
    )
    held: list[ModelRange] = Field(
        default_factory=list,
        description="What prod's tables of changed models hold today, gaps left out.",
    )
    lost: list[ModelRange] = Field(
        default_factory=list,
        description="Ranges that prod's tables hold and the rebuilt tables will not.",
    )
    forward_only_schema_changes: list[Name] = Field(default_factory=list)
    gaps: list[ModelRange] = Field(
        default_factory=list,
        description="Ranges that prod's tables lack although newer intervals are there.",
    )
    would_fail: bool
    failure: Line | None = None
    plan_id: PlanId | None = Field(
        default=None,
        description="What `ci-bot prod-plan --expect` takes; null if nothing changes, where it "
        "would fail, and where the base branch counts as prod.",
    )


WindowCause = Literal[
    "start",
    "end",
    "min_intervals",
    "forward_only_plan",
    "forward_only_model",
    "auto_restatement",
    "virtual_environment_mode",
]


class ShortWindow(Contract):
    """Why an environment gets less history than prod has: what sets the beginning of the plan."""

    cause: WindowCause
    models: list[Name] = Field(
        default_factory=list, description="Changed models that are the cause, where it is models."
    )
    start: Timestamp | None = Field(description="Where the plan begins; null with `min_intervals`.")
    end: Timestamp | None = Field(description="Exclusive.")


class Window(Contract):
    """The arguments that fix a plan in time, so that planning again gives the same plan."""

    start: Timestamp | None
    end: Timestamp | None
    execution_time: Timestamp


# How work is counted: one rule for reviews, estimates, gates and applies.
#
# Tables are counted. Views are named separately: they are replaced in a moment, and nothing is
# computed into them.


class CountedWork(Protocol):
    """An item that can be counted: a planned backfill, or a model that an apply has built."""

    @property
    def action(self) -> BackfillAction | None: ...
    @property
    def intervals(self) -> int: ...
    @property
    def batches(self) -> int: ...


_Item = TypeVar("_Item", bound=CountedWork)


@dataclass(frozen=True)
class Work:
    """Totals; intervals and batches are those of the tables."""

    tables: int = 0
    views: int = 0
    intervals: int = 0
    batches: int = 0
    rebuilt: int = 0


def sum_planned_work(items: Iterable[CountedWork]) -> Work:
    """Sums the work of `items`."""
    every = list(items)
    tables = select_tables(every)
    return Work(
        tables=len(tables),
        views=sum(item.action == "recreate_view" for item in every),
        intervals=sum(item.intervals for item in tables),
        batches=sum(item.batches for item in tables),
        rebuilt=sum(item.action == "full_refresh" for item in tables),
    )


def select_tables(items: Iterable[_Item]) -> list[_Item]:
    """Selects the tables among `items`: no views, and no models that an apply only audited."""
    return [item for item in items if item.action != "recreate_view" and item.intervals]


def pick_larger_work(one: list[Backfill], other: list[Backfill]) -> list[Backfill]:
    """Picks the plan with more work: by intervals, tables, then batches; `one` if equal."""
    first, second = sum_planned_work(one), sum_planned_work(other)
    keys = [(work.intervals, work.tables, work.batches) for work in (first, second)]
    return other if keys[1] > keys[0] else one
