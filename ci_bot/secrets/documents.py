"""Secrets out of a whole document, field by field.

Values of a closed set or a fixed form (a decision, a commit, a time, an id) cannot hold a secret
and stay as they are: they are compared with others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import is_
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from ci_bot.contracts.base import Verbatim

Redact = Callable[[str], str]
_Document = TypeVar("_Document", bound=BaseModel)


def redacted(document: _Document, redact: Redact) -> _Document:
    """`document` with `redact` applied to every text that came from outside.

    Contracts are frozen, so what has no secret is not copied: that is nearly all of a large report.
    """
    changed = {}
    for name in _open_fields(type(document)):
        value = getattr(document, name)
        told = _value(value, redact)
        if told is not value:
            changed[name] = told
    # The copy needs no validation: no text has become longer.
    return document.model_copy(update=changed) if changed else document


def _value(value: Any, redact: Redact) -> Any:
    """The value without secrets; the very object where it has none."""
    if isinstance(value, str):
        told = redact(value)
        return value if told == value else told
    if isinstance(value, BaseModel):
        return redacted(value, redact)
    if isinstance(value, list | tuple):
        parts = [_value(item, redact) for item in value]
        return value if all(map(is_, parts, value)) else type(value)(parts)
    if isinstance(value, dict):
        pairs = [(_value(key, redact), _value(item, redact)) for key, item in value.items()]
        same = all(
            key is before and item is old
            for (key, item), (before, old) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    return value


@cache
def _open_fields(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(
        name
        for name, field in model.model_fields.items()
        if not _closed(field.annotation) and not _is_fixed(field.metadata)
    )


def _closed(annotation: Any) -> bool:
    """Whether every text of this type is one of ours: a literal, or bound to a form."""
    origin = get_origin(annotation)
    if origin is Literal or annotation in (int, float, bool, type(None)):
        return True
    if origin is Annotated:
        base, *extras = get_args(annotation)
        return _closed(base) or any(
            _is_fixed([extra, *getattr(extra, "metadata", [])]) for extra in extras
        )
    if origin in (Union, UnionType):
        return all(_closed(option) for option in get_args(annotation))
    return False


def _is_fixed(metadata: list[Any]) -> bool:
    return any(
        isinstance(item, Verbatim) or getattr(item, "pattern", None) is not None
        for item in metadata
    )
