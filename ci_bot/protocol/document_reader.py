"""Documents of several types, each known by its `activity`."""

from __future__ import annotations

from types import UnionType
from typing import Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import InitErrorDetails

from ci_bot.protocol.base import Contract

Document = TypeVar("Document", bound=Contract)


class _ActivityTag(BaseModel):
    """The one field that tells the types apart."""

    model_config = ConfigDict(extra="ignore", strict=True)

    activity: str


class DocumentReader(Generic[Document]):
    """Reads a document of one of several types.

    Pydantic's own union makes the validators of all its types before it reads anything. With the
    dozens of records in ours that is a tenth of a second for each process, and a run reads one.

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
