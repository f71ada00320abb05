"""Removes secrets from a whole document before any of it is rendered, and so before any cut.

A secret that is cut in two is no longer recognised, therefore redaction comes first. Values of a
closed set (a decision, a commit, a time) cannot hold a secret and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

Redact = Callable[[str], str]
_Document = TypeVar("_Document", bound=BaseModel)


def keep(text: str) -> str:
    """The redaction of a document without secrets: nothing changes."""
    return text


def scrub(document: _Document, redact: Redact) -> _Document:
    """A copy of `document` in which `redact` was applied to every text that came from outside."""
    if redact is keep:
        return document
    return _model(document, cache(redact))


def _model(document: _Document, redact: Redact) -> _Document:
    changed = {
        name: _value(getattr(document, name), redact) for name in _open_fields(type(document))
    }
    # The copy is not validated again: a redacted text may be longer than its field allows.
    return document.model_copy(update=changed)


def _value(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, BaseModel):
        return _model(value, redact)
    if isinstance(value, list):
        return [_value(item, redact) for item in value]
    if isinstance(value, tuple):
        return tuple(_value(item, redact) for item in value)
    if isinstance(value, dict):
        return {_value(key, redact): _value(item, redact) for key, item in value.items()}
    return value


@cache
def _open_fields(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(
        name
        for name, field in model.model_fields.items()
        if not _closed(field.annotation) and not _has_pattern(field.metadata)
    )


def _closed(annotation: Any) -> bool:
    """Whether every text of this type is one of ours: a literal, or bound to a pattern."""
    origin = get_origin(annotation)
    if origin is Literal or annotation in (int, float, bool, type(None)):
        return True
    if origin is Annotated:
        base, *extras = get_args(annotation)
        return _closed(base) or any(_has_pattern(getattr(e, "metadata", [])) for e in extras)
    if origin in (Union, UnionType):
        return all(_closed(option) for option in get_args(annotation))
    return False


def _has_pattern(metadata: list[Any]) -> bool:
    return any(getattr(item, "pattern", None) is not None for item in metadata)
