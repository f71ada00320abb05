"""Contract records in themselves: what they are written as, and what they keep in memory."""

from __future__ import annotations

import os

import pytest

from ci_bot.protocol.base import Contract, Failure, replace_undecodable_bytes
from ci_bot.protocol.review_report import Report
from tests.factories import make_cleanup, make_report

FAILURE = Failure(stage="load", reason_code="failed", exit_code=1, message="No.")


class Empty(Contract):
    """A record without a field."""


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document", [make_report(), make_cleanup(), FAILURE, Empty()], ids=lambda d: type(d).__name__
)
def test_parts__together_are_the_document(document: Contract, indent: int | None) -> None:
    assert b"".join(document.iterate_parts(indent=indent)) == document.to_bytes(indent=indent)


def test_parts__of_a_report__are_as_many_as_its_fields() -> None:
    assert len(list(make_report().iterate_parts())) == len(Report.model_fields) + 1


def test_records__that_have_every_field__share_the_set_of_names() -> None:
    read = [Failure.model_validate_json(FAILURE.to_json()) for _ in range(2)]
    assert read[0].__pydantic_fields_set__ is read[1].__pydantic_fields_set__
    assert read[0].model_fields_set == set(Failure.model_fields)


def test_records__that_left_a_field_out__say_so_still() -> None:
    assert FAILURE.model_fields_set == {"stage", "reason_code", "exit_code", "message"}


def test_copy__has_a_set_of_its_own() -> None:
    whole = Failure.model_validate_json(FAILURE.to_json())
    copy = whole.model_copy(update={"hint": "Do."})
    assert copy.__pydantic_fields_set__ is not whole.__pydantic_fields_set__
    assert copy != whole
    assert Failure.model_validate_json(copy.to_json()) == copy


@pytest.mark.parametrize(
    "raw", [b"models/bad\xff.sql", b"models/\xc3.sql", "models/größe.sql".encode()]
)
def test_path__is_read_alike_by_both_processes(raw: bytes) -> None:
    """The bot decodes what git says; the worker has the name as Python gives it."""
    as_python_has_it = os.fsdecode(raw)
    told = Failure(stage="s", reason_code="r", exit_code=1, message="m", path=as_python_has_it)
    assert told.path == raw.decode("utf-8", "replace")
    assert Failure.model_validate_json(told.to_json()) == told


def test_path__with_any_lone_surrogate_can_be_written() -> None:
    assert replace_undecodable_bytes("a\ud800b") == "a?b"
    assert replace_undecodable_bytes("a\udcff.sql") == "a\ufffd.sql"
