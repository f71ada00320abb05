"""What every contract shares: strictness, scalar types with a rule of their own, and their reader.

The field `activity` says which type a document has, if several are possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import InitErrorDetails

SCHEMA_VERSION: Literal[1] = 1


class Contract(BaseModel):
    """A frozen record that refuses unknown keys and never coerces a value silently."""

    # A run uses a third of the contracts. So Pydantic builds each one only when it is first used.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        populate_by_name=True,
        defer_build=True,
    )

    def model_post_init(self, _context: Any, /) -> None:
        """Shares one set of field names among all records of a type that have every field.

        Pydantic keeps a set for each record: a third of the memory of a large answer. Sharing is
        safe, because a record is frozen, and a copy of a record copies its set.
        """
        every = _list_every_field(type(self))
        if self.__pydantic_fields_set__ == every:
            object.__setattr__(self, "__pydantic_fields_set__", every)

    def to_json(self, *, indent: int | None = None) -> str:
        """Returns the document as JSON, as it is written to a file or sent to the other process."""
        return self.to_bytes(indent=indent).decode()

    def to_bytes(self, *, indent: int | None = None) -> bytes:
        """Returns the same in UTF-8. The text of a large document is never in memory beside it.

        (`BaseModel.model_dump_json`, which decodes these bytes)
        """
        return self.__pydantic_serializer__.to_json(self, by_alias=True, indent=indent)

    def iterate_parts(self, *, indent: int | None = None) -> Iterator[bytes]:
        """Yields what `to_bytes` returns, by field: a large document is never whole in memory."""
        end = -1 if indent is None else -2  # the closing brace has a line of its own
        before = b"{"
        for name in type(self).model_fields:
            alone = self.__pydantic_serializer__.to_json(
                self, by_alias=True, indent=indent, include={name}
            )
            yield before + alone[1:end]
            before = b","
        yield b"{}" if before == b"{" else alone[end:]


@cache
def _list_every_field(record: type[BaseModel]) -> set[str]:
    return set(record.model_fields)


class VerbatimContract:
    """Marks a text of the worker that is compared with what the bot knows.

    It is shown only if both are equal, so it is left as it is when secrets are removed.
    """


Timestamp = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$",
        max_length=32,
        description="A moment in UTC, ISO 8601.",
    ),
]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$", description="A git commit.")]
PlanId = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="The whole plan id.")]
Seconds = Annotated[float, Field(ge=0, description="A duration in seconds.")]
Count = Annotated[int, Field(ge=0)]
Bytes = Annotated[int, Field(ge=0, description="A size in bytes.")]


def replace_undecodable_bytes(text: str) -> str:
    """Makes a text that everybody can write: each byte that is not UTF-8 becomes one U+FFFD.

    Python keeps these bytes of a path as lone surrogates, which no document can hold. The bot reads
    file names from git in the same way, so both processes give a file the same name.
    """
    if text.isascii():
        return text
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "replace")
    return raw.decode("utf-8", "replace")


def _make_readable(value: Any) -> Any:
    return replace_undecodable_bytes(value) if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1, max_length=1_000)]
FilePath = Annotated[
    str,
    BeforeValidator(_make_readable),
    Field(min_length=1, max_length=4_096, description="Relative to the repository's root."),
]
Compared = Annotated[str, Field(min_length=1, max_length=1_000), VerbatimContract()]
Text = Annotated[str, Field(max_length=200_000)]
LINE_LENGTH = 4_000
Line = Annotated[str, Field(max_length=LINE_LENGTH, description="One sentence or one statement.")]


def shorten_plan_id(plan_id: str | None) -> str:
    """Returns the 12 digits of a plan id that people see and type, or "" if there is none."""
    return (plan_id or "")[:12]


class Versions(Contract):
    """What computed the document; null if a part was not needed or could not be asked."""

    ci_bot: Name
    python: Name
    sqlmesh: Name | None = None
    sqlglot: Name | None = None
    pyspark: Name | None = None
    java: Name | None = None
    state_schema: int | None = None
    state_sqlmesh: Name | None = None
    state_engine: Name | None = None


Timings = Annotated[
    dict[str, Annotated[float, Field(ge=0)]],
    Field(description="Seconds by phase, in the order in which the phases ran."),
]


class Failure(Contract):
    """Why an activity failed, in words for the person who has to act on it."""

    stage: Name = Field(description="Where it happened: load, lint, tests, plan, apply, cleanup.")
    reason_code: Name
    exit_code: int = Field(ge=1, le=143)
    message: Text = Field(description="One clear sentence (more lines only for parser output).")
    hint: Text | None = Field(default=None, description="What to do next.")
    model: Name | None = None
    path: FilePath | None = None
    line: Count | None = None
    project: str | None = Field(
        default=None,
        max_length=200,
        description="Whose recorded code it is about, if that is another project on the same "
        "state; empty if the record does not say.",
    )


def make_json_schema_of_contract(model: type[BaseModel]) -> dict[str, object]:
    """Returns the JSON Schema (draft 2020-12) of `model`, as it is written to a file."""
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


Document = TypeVar("Document", bound=Contract)


class _ActivityTag(BaseModel):
    """The one field that distinguishes the types."""

    model_config = ConfigDict(extra="ignore", strict=True)

    activity: str


class ContractReader(Generic[Document]):
    """Reads a document of one of several types.

    Pydantic's own union builds the validators of all its types before it reads anything. With our
    dozens of records that takes a tenth of a second in each process, and a run reads only one.

    Args:
        types: Union of contracts, each with an `activity` of its own.
    """

    def __init__(self, types: UnionType) -> None:
        self._types: dict[str, type[Document]] = {
            get_args(record.model_fields["activity"].annotation)[0]: record
            for record in get_args(types)
        }

    def validate_json(self, text: str | bytes) -> Document:
        """Reads a document.

        Raises:
            ValidationError: It is not JSON, or does not fit the contract of its activity.
        """
        tag = _ActivityTag.model_validate_json(text).activity
        record = self._types.get(tag)
        if record is None:
            unknown = InitErrorDetails(
                type="literal_error",
                loc=("activity",),
                input=tag,
                ctx={"expected": " or ".join(map(repr, self._types))},
            )
            raise ValidationError.from_exception_data("document", [unknown])
        return record.model_validate_json(text)


def name_what_does_not_load(failures: Sequence[Failure]) -> str:
    """Names what cannot be planned here although the pull request did not break it.

    Returns the beginning of a sentence.
    """
    if any(failure.project is not None for failure in failures):
        return "A model of another project on the same state does not load here"
    return "The base branch does not load here"
