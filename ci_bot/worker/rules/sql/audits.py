"""What a model's audits promise, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

_NOT_NULL = frozenset({"not_null", "not_null_non_blocking"})
_UNIQUE = frozenset({"unique_values", "unique_values_non_blocking"})
_TOGETHER = frozenset(
    {"unique_combination_of_columns", "unique_combination_of_columns_non_blocking"}
)


@dataclass(frozen=True)
class Promises:
    """The audits of one model.

    Attributes:
        not_null: columns that may not be null, with whether a failure stops the run.
        unique: sets of columns that are unique together, likewise.
        other: every other audit by name and arguments, likewise.
        skipped: audits that are attached but switched off.
        queries: the text of the project's own audits.
        arguments: the arguments of each call in `other`.
    """

    not_null: Mapping[str, bool] = field(default_factory=dict)
    unique: Mapping[frozenset[str], bool] = field(default_factory=dict)
    other: Mapping[str, bool] = field(default_factory=dict)
    skipped: frozenset[str] = frozenset()
    queries: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def makes_unique(self, key: frozenset[str]) -> bool:
        """Whether some audit promises that `key` identifies a row."""
        return any(columns <= key for columns in self.unique)


def promises(model: Any) -> Promises:
    """Reads the audits of `model`; one that cannot be resolved counts by its name."""
    definitions = model.audit_definitions
    not_null: dict[str, bool] = {}
    unique: dict[frozenset[str], bool] = {}
    other: dict[str, bool] = {}
    skipped: set[str] = set()
    queries: dict[str, str] = {}
    arguments: dict[str, Mapping[str, Any]] = {}
    calls = list(model.audits)
    calls += [(name, {}) for name in definitions if name not in {call for call, _ in calls}]
    for raw_name, args in calls:
        name = raw_name.lower()
        own = definitions.get(raw_name)
        blocking = own.blocking if own is not None else not name.endswith("_non_blocking")
        blocking = _flag(args.get("blocking"), blocking)
        if (own is not None and own.skip) or _flag(args.get("skip"), False):
            skipped.add(name)
            continue
        if own is not None:
            queries[name] = own.query_.sql
        named = args.get("columns")
        if named is None:
            named = args.get("column")
        if name in _NOT_NULL and own is None and "condition" not in args:
            for column in column_names(named):
                not_null[column] = blocking or not_null.get(column, False)
        elif name in _UNIQUE and own is None and "condition" not in args:
            for column in column_names(named):
                key = frozenset({column})
                unique[key] = blocking or unique.get(key, False)
        elif name in _TOGETHER and own is None and "condition" not in args:
            key = frozenset(column_names(named))
            unique[key] = blocking or unique.get(key, False)
        else:
            base = name.removesuffix("_non_blocking")
            call = f"{base}({_arguments(args)})"
            other[call] = blocking
            arguments[call] = {k: v for k, v in args.items() if k not in {"blocking", "skip"}}
    return Promises(not_null, unique, other, frozenset(skipped), queries, arguments)


def _flag(value: Any, default: bool) -> bool:
    if value is None:
        return default
    if isinstance(value, bool):
        return value
    return str(getattr(value, "name", value)).lower() not in {"false", "0", ""} and not (
        isinstance(value, exp.Boolean) and not value.this
    )


def _arguments(args: Mapping[str, Any]) -> str:
    shown = {
        name: value.sql() if hasattr(value, "sql") else str(value)
        for name, value in args.items()
        if name not in {"blocking", "skip"}
    }
    return ", ".join(f"{name}={value}" for name, value in sorted(shown.items()))


def column_names(value: Any) -> list[str]:
    """Column names, in lower case, of an audit's argument, a grain or a key."""
    items = value if isinstance(value, list | tuple) else [value]
    found: list[str] = []
    for item in items:
        if isinstance(item, str):
            found.append(item.lower())
        elif isinstance(item, exp.Literal | exp.Identifier):
            found.append(item.name.lower())
        elif isinstance(item, exp.Expression):
            parts = [column.name.lower() for column in item.find_all(exp.Column, exp.Literal)]
            found.extend(part for part in parts if part)
    return list(dict.fromkeys(found))
