"""Types of columns are read from their text once for each text, and copied for each column.

A Python model says the types of all its columns as texts: in a project of 3,000 such models 150,000
texts are read twice each, and hardly a hundred of them differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlglot import exp
from sqlmesh.core.model import meta


@contextmanager
def types_read_once() -> Iterator[None]:
    """Has `DataType.build` and the reading of columns remember texts while this block lasts.

    (`exp.DataType.build`, `ModelMeta._columns_validator`)
    """
    kind, module = exp.DataType, vars(meta)
    plain, plain_parse = vars(kind)["build"], module.get("parse_one")
    built: dict[Any, exp.DataType] = {}
    parsed: dict[Any, Any] = {}

    def build(
        cls: Any, dtype: Any, dialect: Any = None, udt: bool = False, *rest: Any, **more: Any
    ) -> Any:
        known = isinstance(dtype, str) and isinstance(dialect, str | None) and not rest
        if not known or more:
            return plain.__func__(cls, dtype, dialect, udt, *rest, **more)
        key = cls, dtype, dialect, udt
        if key not in built:
            built[key] = plain.__func__(cls, dtype, dialect, udt)
        return built[key].copy()

    def parse_one(sql: Any, *rest: Any, **named: Any) -> Any:
        dialect = named.get("read")
        known = named.get("into") is kind and isinstance(dialect, str | None)
        if not known or rest or len(named) > 2:  # noqa: PLR2004 - these two
            return plain_parse(sql, *rest, **named)  # type: ignore[misc]
        key = sql, dialect
        if key not in parsed:
            parsed[key] = plain_parse(sql, **named)  # type: ignore[misc]
        return parsed[key].copy()

    changed: Any = kind
    changed.build = classmethod(build)
    if plain_parse is not None:
        module["parse_one"] = parse_one
    try:
        yield
    finally:
        changed.build = plain
        if plain_parse is not None:
            module["parse_one"] = plain_parse
