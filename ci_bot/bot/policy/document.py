"""What may stand in a policy file: one class for each kind of entry.

The same classes check a file and give the JSON Schema with which editors complete one
(`docs/policy.schema.json`).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import Self, TypeAliasType

from ci_bot.bot.actions import FailOn
from ci_bot.bot.policy.weighable_rules import UNWEIGHED, list_rules_that_policy_may_weigh
from ci_bot.protocol.comment import MOST_CHARACTERS, find_unfit_part_of_team_words
from ci_bot.protocol.cost import PRICE, Price
from ci_bot.protocol.files import MOST_INTERVALS
from ci_bot.protocol.plan import Severity

EVERY_RULE = "*"
OFF: Literal["off"] = "off"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ADDRESS = re.compile(r"[^@\s<>]{1,200}@[^@\s<>]{1,200}")
_ACCOUNT = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?")
NO_ACCOUNT = "must be a login or `organization/team` of GitHub"
# For this selector SQLMesh would run git, which the process that plans does not have.
_GIT = re.compile(r"(?<![\w.])git:")


def _convert_policy_value_to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _convert_policy_value_to_columns(value: Any) -> Any:
    if value == "all":
        return None
    if not isinstance(value, list):
        raise ValueError("must be a list of columns, or `all`")
    return value


def _convert_policy_value_to_date(value: Any) -> Any:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise ValueError("must be a date, as in 2027-03-31")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value} is no day of the calendar") from None


def _validate_policy_line(text: str) -> str:
    plain = " ".join(text.split())
    if not plain:
        raise ValueError("must say something")
    if not plain.isprintable():
        raise ValueError("must hold printable characters only")
    return plain


def _validate_policy_price(value: Any) -> Any:
    return str(Price.parse_price(str(value)))


def _validate_policy_account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise ValueError(NO_ACCOUNT)
    return text.removeprefix("@")


def is_account_in_policy(text: str) -> bool:
    """Whether a text is a login or an organization/team of GitHub."""
    return _ACCOUNT.fullmatch(text) is not None


def _validate_policy_owner(text: str) -> str:
    if is_account_in_policy(text):
        return text.removeprefix("@")
    if not _ADDRESS.fullmatch(text):
        raise ValueError("must be a login, `organization/team` of GitHub, or an e-mail address")
    return text


def _validate_policy_file_path(text: str) -> str:
    parts = text.split("/")
    if text.startswith("/") or "\\" in text or ":" in text or {"..", ".", ""} & {*parts}:
        raise ValueError("must be a file of the repository, as in `models/exposures.yml`")
    return text


def _validate_policy_words(text: str) -> str:
    words = text.strip("\n")
    unfit = find_unfit_part_of_team_words(words)
    if unfit is not None:
        raise ValueError(unfit)
    return words


def _validate_policy_message(text: str) -> str:
    line = text.strip()
    unfit = find_unfit_part_of_team_words(line, one_line=True)
    if unfit is not None:
        raise ValueError(unfit)
    return line


def _validate_policy_selection(text: str) -> str:
    if _GIT.search(text):
        raise ValueError("cannot select by `git:`; name models or tags")
    return text


RuleName = TypeAliasType("RuleName", Annotated[str, Field(max_length=100)])

_Word = Annotated[str, Field(max_length=500), AfterValidator(_validate_policy_line)]

_TeamWords = Annotated[
    str,
    Field(
        max_length=MOST_CHARACTERS,
        description="Markdown without HTML and mentions; {plan}, {environment} and {decision} are "
        "filled in.",
    ),
    AfterValidator(_validate_policy_words),
]

_Message = Annotated[
    str,
    Field(max_length=500, description="One line of Markdown, such as a link to a runbook."),
    AfterValidator(_validate_policy_message),
]

_Selection = Annotated[_Word, AfterValidator(_validate_policy_selection)]

_Account = Annotated[str, AfterValidator(_validate_policy_account)]

_Price = Annotated[
    str,
    BeforeValidator(_validate_policy_price),
    WithJsonSchema({"type": "string", "pattern": f"^{PRICE}$", "examples": ["0.42 EUR"]}),
]

StatementAction = Literal["writes", "creates", "replaces", "alters", "drops", "grants", "describes"]

_Some = Field(min_length=1, max_length=500)
# The brackets of a list with one item may be left out.
_Words = Annotated[
    list[_Word],
    _Some,
    BeforeValidator(_convert_policy_value_to_list, json_schema_input_type=str | list[str]),
]

Day = Annotated[
    date,
    BeforeValidator(_convert_policy_value_to_date, json_schema_input_type=str),
    WithJsonSchema({"type": "string", "format": "date"}),
]

Rules = Annotated[
    list[RuleName],
    _Some,
    BeforeValidator(
        _convert_policy_value_to_list, json_schema_input_type=RuleName | list[RuleName]
    ),
    Field(description="A rule's id, or a list of them."),
]

PolicyReason = Annotated[_Word, Field(description="Why; shown with every finding that it changes.")]

Models = Annotated[
    list[_Selection],
    _Some,
    BeforeValidator(_convert_policy_value_to_list, json_schema_input_type=str | list[str]),
    Field(description="Models in SQLMesh's selector syntax: names with *, tag:x, +m+, &, |, ^."),
]

Owners = Annotated[_Words, Field(description="SQLMesh owners, as models name them.")]

Paths = Annotated[
    _Words, Field(description="Files, relative to the repository; * also matches directories.")
]

Targets = Annotated[
    _Words, Field(description="Tables that it may be done to, as in audit.*; part by part.")
]

StatementActions = Annotated[
    list[StatementAction],
    _Some,
    BeforeValidator(
        _convert_policy_value_to_list,
        json_schema_input_type=StatementAction | list[StatementAction],
    ),
    Field(description="What may be done to them."),
]

Schemas = Annotated[
    _Words, Field(description="Schemas whose models may hold personal data, as in crm or raw_*.")
]

Accounts = Annotated[
    list[_Account],
    _Some,
    BeforeValidator(_convert_policy_value_to_list, json_schema_input_type=str | list[str]),
    Field(description="Logins, and teams as organization/team."),
]


ReaderOwners = Annotated[
    list[Annotated[_Word, AfterValidator(_validate_policy_owner)]],
    Field(min_length=1, max_length=20),
    BeforeValidator(_convert_policy_value_to_list, json_schema_input_type=str | list[str]),
    Field(description="Whom to ask: logins, teams as organization/team, or e-mail addresses."),
]

# None means all columns. With an empty list it only reads which rows exist, as COUNT(*) does.
_ReadColumns = Annotated[
    Annotated[list[_Word], Field(max_length=2_000)] | None,
    BeforeValidator(
        _convert_policy_value_to_columns, json_schema_input_type=list[str] | Literal["all"]
    ),
]


class _PolicyPart(BaseModel):
    """A mapping of the file. Keys have hyphens, and one that is not known is refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        # Most runs have no policy, and no run needs all of these classes before the worker has
        # started.
        defer_build=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )


class PolicyEntry(_PolicyPart):
    """An item of one of the file's lists.

    Attributes:
        path, line: where it stands; set by whoever read the file.
    """

    _path: str = PrivateAttr("")
    _line: int = PrivateAttr(0)

    @property
    def path(self) -> str:
        return self._path

    @property
    def line(self) -> int:
        return self._line

    @property
    def source_position(self) -> str:
        return f"{self._path} line {self._line}"

    def found_at(self, path: str, line: int) -> Self:
        self._path, self._line = path, line
        return self


class ScopedEntry(PolicyEntry):
    """An entry that may be about some models or files only."""

    models: Models | None = None
    owner: Owners | None = None
    paths: Paths | None = None

    @property
    def is_scoped(self) -> bool:
        return any((self.models, self.owner, self.paths))

    @property
    def asks_for_models(self) -> bool:
        return bool(self.models or self.owner)


class SeverityEntry(ScopedEntry):
    """A weight of some rules. Of several that apply to a finding the last one counts."""

    rule: Rules
    severity: Literal["blocker", "high", "medium", "low", "info", "off"]
    reason: PolicyReason

    @model_validator(mode="after")
    def _every_rule_needs_a_scope(self) -> Self:
        if EVERY_RULE in self.rule and not self.is_scoped:
            raise ValueError("`rule: '*'` needs `models`, `owner` or `paths`")
        return self


class IgnoreEntry(ScopedEntry):
    """Findings of some rules on some models or files that do not count until a day has passed."""

    rule: Rules
    reason: PolicyReason
    until: Annotated[Day, Field(description="The last day on which it holds.")]

    @model_validator(mode="after")
    def _needs_a_scope(self) -> Self:
        if not (self.models or self.paths):
            raise ValueError("an ignore needs `models` or `paths`")
        return self


class StatementEntry(PolicyEntry):
    """What SQL statements of models may do to objects that are not the environment's own."""

    target: Targets
    does: StatementActions = ["writes"]
    models: Models | None = None
    reason: PolicyReason


class PersonalData(_PolicyPart):
    schemas: Schemas


class PolicyLimits(_PolicyPart):
    """What the inputs of the same names say. An input that is given wins."""

    max_intervals: Annotated[int, Field(ge=0, le=MOST_INTERVALS)] | None = None
    max_executor_hours: Annotated[float, Field(ge=0)] | None = None
    diff_tolerance: Annotated[float, Field(ge=0, le=1)] | None = None
    fail_on: FailOn | None = None


class CommentSettings(_PolicyPart):
    executor_hour_price: _Price | None = None
    header: _TeamWords | None = None
    footer: _TeamWords | None = None


class MessageEntry(ScopedEntry):
    """What a team has to say about findings of some rules. The last one that applies is shown."""

    rule: Rules
    message: _Message


class DiffEntry(PolicyEntry):
    """How much of some models may differ in the data diff. The last one that applies counts."""

    models: Models
    tolerance: Annotated[float, Field(ge=0, le=1, description="Share of rows, 0 to 1.")]
    reason: PolicyReason


class TrustEntry(PolicyEntry):
    """Whom the team trusts; there is one in a file."""

    code_on_load: Annotated[
        Literal["nobody", "writers"],
        Field(
            description="Whose changes of code that runs on load are a note: nobody's, or those of "
            "people with write permission, in commits that GitHub has verified."
        ),
    ]


class OwnerEntry(PolicyEntry):
    """Who on GitHub owns some models. The last one that applies counts."""

    models: Models | None = None
    owner: Owners | None = None
    github: Accounts

    @model_validator(mode="after")
    def _needs_a_scope(self) -> Self:
        if not (self.models or self.owner):
            raise ValueError("an owner needs `models` or `owner`")
        return self


class ExposureEntry(PolicyEntry):
    """A reader outside of the project, or a file that lists some as dbt's `exposures:` do."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["name", "owner", "reads"]}, {"required": ["file"]}]
        }
    )

    name: Annotated[_Word, Field(max_length=200)] | None = None
    owner: ReaderOwners | None = None
    reads: (
        Annotated[
            dict[_Word, _ReadColumns],
            Field(
                min_length=1,
                max_length=500,
                description="Each model with the columns that are read, or `all`.",
            ),
        ]
        | None
    ) = None
    file: (
        Annotated[
            _Word,
            AfterValidator(_validate_policy_file_path),
            Field(
                description="A file of the repository with `exposures:`. `owner` beside it is "
                "asked if an exposure of it names nobody on GitHub."
            ),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _is_reader_or_file(self) -> Self:
        if self.file is None and None in (self.name, self.owner, self.reads):
            raise ValueError("an exposure needs `name`, `owner` and `reads`, or else `file`")
        if self.file is not None and (self.name or self.reads):
            raise ValueError("`file` stands without `name` and `reads`, which the file says")
        return self


def _replace_empty_policy_key_by_list(value: Any) -> Any:
    """A key without a value is an empty list."""
    return [] if value is None else value


_Entries = BeforeValidator(_replace_empty_policy_key_by_list)


class PolicyFile(_PolicyPart):
    """The file."""

    model_config = ConfigDict(title="Policy of a SQLMesh plan review")

    version: Literal[1] = 1
    severity: Annotated[list[SeverityEntry], _Entries] = []
    ignore: Annotated[list[IgnoreEntry], _Entries] = []
    statements: Annotated[list[StatementEntry], _Entries] = []
    personal_data: PersonalData | None = None
    limits: PolicyLimits = PolicyLimits()
    comment: CommentSettings = CommentSettings()
    data_diff: Annotated[list[DiffEntry], _Entries] = []
    owners: Annotated[list[OwnerEntry], _Entries] = []
    exposures: Annotated[list[ExposureEntry], _Entries] = []
    trust: TrustEntry | None = None
    messages: Annotated[list[MessageEntry], _Entries] = []


AnyWeight = Severity | Literal["off"]


# The JSON Schema with which an editor completes a policy, and finds what is wrong with it.


def render_policy_schema() -> dict[str, object]:
    """Draft 2020-12, with the rules that a policy may name."""
    schema = PolicyFile.model_json_schema(mode="validation")
    rules = sorted(set(list_rules_that_policy_may_weigh()) - set(UNWEIGHED))
    schema["$defs"]["RuleName"] = {"enum": [EVERY_RULE, *rules]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
