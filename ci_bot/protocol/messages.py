"""What the bot asks the worker, and what the worker reports while it works."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from ci_bot.protocol.apply_report import ApplyDocument, EstimateDocument
from ci_bot.protocol.base import (
    SCHEMA_VERSION,
    Contract,
    ContractReader,
    Count,
    Failure,
    FilePath,
    Line,
    Name,
    Seconds,
    Text,
    Timings,
    Versions,
)
from ci_bot.protocol.cleanup_report import (
    CleanupDocument,
    EnvironmentList,
    SweepDocument,
    SweepTarget,
)
from ci_bot.protocol.cost import ExposuresDocument, LearnDocument, Price
from ci_bot.protocol.environment import (
    EnvironmentName,
    check_claim_of_environment,
    check_environment_prefix,
    parse_apply_environment,
    parse_cleanup_environment,
    parse_review_environment,
)
from ci_bot.protocol.plan import ProjectCheck, Window
from ci_bot.protocol.plan_identity import GivenFlags, PlanIdentity
from ci_bot.protocol.review_inputs import (
    BaseCache,
    BaseTests,
    KnownFile,
    ModelScope,
    RecordedRestatement,
    RestatementWish,
    SameAnswer,
    ScanFacts,
    ScopesAnswer,
    TestName,
)
from ci_bot.protocol.review_report import Acceptance, ReviewFacts

# What `ci-bot doctor` checks: one line for each part, with the fix.


class DoctorDocument(Contract):
    """The worker's answer. It changed nothing, neither in the state nor in the warehouse."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["doctor"] = "doctor"
    checks: list[ProjectCheck] = Field(min_length=1)
    configured: bool = Field(description="Whether the configuration could be read at all.")
    seconds: Seconds
    timings: Timings = Field(default_factory=dict)
    versions: Versions


BaselineChoice = Literal["auto", "state", "base-branch"]

ReclaimChoice = Literal["auto", "never", "always"]

Prefix = Annotated[str, AfterValidator(check_environment_prefix)]


class Owner(Contract):
    """Who an environment belongs to: the repository, and the pull request if there is one."""

    name: Name
    pr_number: Count | None = None
    head_sha: Name | None = None
    run: Name | None = Field(default=None, description="Which run asks, for locks and the ledger.")


class Workplace(Contract):
    """Directories of this run. They are private to it and deleted after it."""

    repository: Name = Field(
        description="Root of the checkout; paths in answers are relative to it"
    )
    cache_dir: Name
    scratch_dir: Name
    own: bool = Field(
        default=False,
        description="The repository is the asker's own directory, so that its path may be shown.",
    )
    python_path: list[Name] = Field(
        default_factory=list,
        description="Directories of the checkout where the project's Python modules are found.",
    )
    linked_to: Name | None = Field(
        default=None,
        description="The checkout that large files are links to, where `repository` is a copy.",
    )


_BeforeDirectory = Annotated[
    Name | None, Field(description="Directory with the base branch's version of the changed files.")
]

_ReviewedWindow = Annotated[
    Window | None, Field(description="The reviewed window, from the marker.")
]


class _Request(Contract):
    schema_version: Literal[1] = SCHEMA_VERSION
    projects: list[Name] = Field(min_length=1)
    gateway: Name | None = None
    workplace: Workplace
    owner: Owner


class _PlanningRequest(Contract):
    """What a plan is made with; what is not given here comes from the project's configuration."""

    flags: GivenFlags = Field(default_factory=GivenFlags)
    start: str | None = None
    end: str | None = None
    pinned: bool = Field(
        default=False, description="The dates are those of a review, and no input's."
    )
    head_branch: Name | None = Field(
        default=None, description="The branch that is to be merged; null: not known."
    )
    base_names: list[Name] = Field(
        default_factory=list,
        description="How `git:` in a selection may call the base; empty: git itself is asked.",
    )
    changed_files: list[FilePath] | None = Field(
        default=None,
        description="Files of the PR's diff, relative to the repository; null unknown.",
    )


class ReviewRequest(_PlanningRequest, _Request):
    activity: Literal["review"] = "review"
    environment: Annotated[EnvironmentName, BeforeValidator(parse_review_environment)]
    baseline: BaselineChoice = "auto"
    base_repository: Name | None = Field(
        default=None, description="Root of the base branch's tree, if exported."
    )
    base_projects: list[Name] = Field(
        default_factory=list,
        description="The project directories below it; those that the base branch has.",
    )
    unread_files: list[FilePath] = Field(
        default_factory=list,
        description="Those of the changed files that are too large to be read.",
    )
    before_dir: _BeforeDirectory = None
    before_apply: bool = Field(
        default=False, description="Whether an apply of this run loads the same project again."
    )
    plan_without_prod: bool = Field(
        default=True,
        description="Whether a state without prod is planned against; if not, the answer only "
        "says that there is none.",
    )
    execution_time: str | None = None
    executor_hour_price: Price | None = None
    scopes: list[ModelScope] = Field(
        default_factory=list, description="Whose models the policy has to know."
    )
    exposed: list[Line] = Field(
        default_factory=list,
        description="Names of models that readers outside of the project read, by the policy.",
    )
    personal_schemas: list[Name] | None = Field(
        default=None,
        description="Schemas that may hold personal data, `*` matches; null: nobody has said.",
    )
    known_files: list[KnownFile] = Field(
        default_factory=list,
        description="What a run on the default branch found out about files of models.",
    )
    restated_by: list[Count] = Field(
        default_factory=list,
        description="The pull requests of the owner whose recorded restatements count.",
    )
    wish: RestatementWish | None = Field(
        default=None, description="A restatement that is asked for, in the place of a recorded one."
    )


class BaseTestsRequest(_Request):
    """How do these unit tests end in the projects of the base branch?"""

    activity: Literal["base_tests"] = "base_tests"
    base_repository: Name = Field(description="Root of the base branch's tree.")
    tests: list[TestName] = Field(min_length=1)


class ScanRequest(_Request):
    """What do the changed files say alone? Nothing of the project is loaded for it."""

    activity: Literal["scan"] = "scan"
    changed_files: list[FilePath] = Field(
        description="Files of the PR's diff, relative to the repository."
    )
    unread_files: list[FilePath] = Field(
        default_factory=list, description="Those that are too large to be read."
    )
    before_dir: _BeforeDirectory = None
    copied_from: list[FilePath] = Field(
        default_factory=list,
        description="Files beside them there, which the change leaves as they are.",
    )


class ScopesRequest(_Request):
    """Can SQLMesh read the scopes of a policy, and which of them mean a model?"""

    activity: Literal["scopes"] = "scopes"
    scopes: list[ModelScope]
    model: Name | None = Field(
        default=None, description="Null: nothing of the project is loaded, and no model is meant."
    )


class SameRequest(_Request):
    """Do two queries give the same? Nothing of a project is loaded for it."""

    activity: Literal["same"] = "same"
    before: Text = Field(description="A query in Spark's SQL.")
    after: Text
    before_name: Name = Field(description="What messages call it.")
    after_name: Name
    schema_text: Text | None = Field(
        default=None,
        description="The columns of the tables that they read, as external_models.yaml has them.",
    )
    schema_name: Name | None = None


class AcceptRequest(_Request):
    """Record that a model's owner accepts a finding. The bot has checked that they may."""

    activity: Literal["accept"] = "accept"
    acceptance: Acceptance

    @model_validator(mode="after")
    def _is_of_a_pull_request(self) -> Self:
        if self.owner.pr_number is None:
            raise ValueError("findings are accepted for a pull request")
        return self


class AcceptAnswer(Contract):
    """What the ledger holds for the pull request now."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["accept"] = "accept"
    acceptances: list[Acceptance]


class RestateRequest(_Request):
    """Record that an owner wants prod to build a model again, or take that back."""

    activity: Literal["restate"] = "restate"
    model: Name
    restatement: RecordedRestatement | None = Field(description="Null: it is taken back.")

    @model_validator(mode="after")
    def _concerns_its_pull_request(self) -> Self:
        if self.owner.pr_number is None:
            raise ValueError("restatements belong to a pull request")
        if self.restatement is not None and self.restatement.model != self.model:
            raise ValueError("the restatement is of another model")
        return self


class RestateAnswer(Contract):
    """What the ledger held for the pull request before, and what it holds now."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["restate"] = "restate"
    before: list[RecordedRestatement]
    restatements: list[RecordedRestatement]


class _EnvironmentRequest(_Request):
    """A request that changes an environment: a pull request's, or a person's on a laptop."""

    environment_prefix: Prefix = "pr"
    claim: bool = Field(
        default=False, description="A person says that it is theirs although no record does."
    )
    environment: EnvironmentName

    @classmethod
    def judge_name(cls, text: str, *, prefix: str, number: int | None) -> EnvironmentName:
        """Returns the name, if this request may be about it."""
        raise NotImplementedError

    @field_validator("environment", mode="before")
    @classmethod
    def _is_fit(cls, text: object, info: ValidationInfo) -> object:
        known = info.data  # an invalid field is not in it, and pydantic refuses it without our help
        if not isinstance(text, str) or not {"owner", "environment_prefix", "claim"} <= set(known):
            return text
        number = known["owner"].pr_number
        check_claim_of_environment(claim=known["claim"], number=number)
        return cls.judge_name(text, prefix=known["environment_prefix"], number=number)


class ApplyRequest(_PlanningRequest, _EnvironmentRequest):
    activity: Literal["apply"] = "apply"
    plan_id: Name | None = Field(default=None, description="Full id or prefix; null: no check.")
    reviewed: PlanIdentity | None = None
    window: _ReviewedWindow = None
    table_diff: bool = True
    executor_hour_price: Price | None = None
    max_executor_hours: Seconds | None = Field(
        default=None, description="A higher estimate is refused before anything is written."
    )
    probe: bool = Field(
        default=False,
        description="Build the newest batch of models, say what the whole will cost, and stop.",
    )

    @classmethod
    def judge_name(cls, text: str, *, prefix: str, number: int | None) -> EnvironmentName:
        return parse_apply_environment(text, prefix=prefix, number=number)


class EstimateRequest(_PlanningRequest, _Request):
    """What will building the plan cost? Spark is asked what models would read; read-only."""

    activity: Literal["estimate"] = "estimate"
    environment: Annotated[EnvironmentName, BeforeValidator(parse_review_environment)]
    window: _ReviewedWindow = None
    executor_hour_price: Price | None = None


class CleanupRequest(_EnvironmentRequest):
    """Remove this environment.

    `expected`: it probably exists, so it is worth starting Spark before anybody knows.
    """

    activity: Literal["cleanup"] = "cleanup"
    reclaim: ReclaimChoice = "auto"
    merged: bool | None = None
    expected: bool = True

    @classmethod
    def judge_name(cls, text: str, *, prefix: str, number: int | None) -> EnvironmentName:
        return parse_cleanup_environment(text, prefix=prefix, number=number)


class ListRequest(_Request):
    """Which environments named `<prefix>_<number>` are there? Read-only, without Spark."""

    activity: Literal["list"] = "list"
    environment_prefix: Prefix = "pr"
    survey: bool = Field(
        default=False, description="Also say what prod lacks, and what nobody uses."
    )


class SweepRequest(_Request):
    """Clean up these environments, one after the other, with one Spark session for all."""

    activity: Literal["sweep"] = "sweep"
    environment_prefix: Prefix = "pr"
    reclaim: ReclaimChoice = "auto"
    targets: list[SweepTarget] = Field(min_length=1)

    @model_validator(mode="after")
    def _is_fit(self) -> Self:
        for target in self.targets:
            parse_cleanup_environment(
                target.environment, prefix=self.environment_prefix, number=target.pr_number
            )
        return self


class LearnRequest(_Request):
    """What have prod's own runs cost? Read Spark's event logs, and write it into the ledger."""

    activity: Literal["learn"] = "learn"
    event_logs: Name = Field(description="The directory: a path, or a URL of a file system.")


class ExposuresRequest(_Request):
    """Who has read prod's tables, according to these event logs?"""

    activity: Literal["exposures"] = "exposures"
    event_logs: Name = Field(description="A directory: a path, or a URL that Hadoop knows.")


class RememberRequest(_Request):
    """Which files define models as prod has them? For later reviews; read-only."""

    activity: Literal["remember"] = "remember"


class DoctorRequest(_Request):
    """Are the parts ready that the other activities need? Read-only."""

    activity: Literal["doctor"] = "doctor"
    environment_prefix: Prefix = "pr"


AnyRequest = (
    ReviewRequest
    | BaseTestsRequest
    | ScanRequest
    | ScopesRequest
    | SameRequest
    | AcceptRequest
    | RestateRequest
    | ApplyRequest
    | EstimateRequest
    | CleanupRequest
    | ListRequest
    | SweepRequest
    | DoctorRequest
    | LearnRequest
    | ExposuresRequest
    | RememberRequest
)

REQUEST: ContractReader[AnyRequest] = ContractReader(AnyRequest)


class FailedAnswer(Contract):
    """The answer of an activity that ended before it had a document of its own."""

    schema_version: Literal[1] = SCHEMA_VERSION
    activity: Literal["failure"] = "failure"
    failure: Failure
    failures: list[Failure] = Field(
        default_factory=list,
        description="Where the project does not load: everything that was found, not the first.",
    )
    base_failures: list[Failure] | None = Field(
        default=None, description="The same of the base branch; null where it was not loaded."
    )
    traceback: Text | None = Field(
        default=None, description="For the log, where the failure was none that we foresaw."
    )


AnyAnswer = (
    ReviewFacts
    | BaseTests
    | ScanFacts
    | ScopesAnswer
    | SameAnswer
    | AcceptAnswer
    | RestateAnswer
    | ApplyDocument
    | EstimateDocument
    | CleanupDocument
    | EnvironmentList
    | SweepDocument
    | DoctorDocument
    | LearnDocument
    | ExposuresDocument
    | BaseCache
    | FailedAnswer
)

ANSWER: ContractReader[AnyAnswer] = ContractReader(AnyAnswer)


class Progress(Contract):
    """One line on the progress channel, while the worker works."""

    phase: Name
    message: Line
    done: Count | None = None
    total: Count | None = None
    seconds: Seconds | None = None
