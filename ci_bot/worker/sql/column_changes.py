"""Columns that a change adds, drops or retypes, and the models that read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from ci_bot.protocol.plan import ColumnChange
from ci_bot.worker.sql.model_query import ModelQueries, plain_name
from ci_bot.worker.sql.selects import table_name
from ci_bot.worker.sqlmesh_compat import read_column_types_of_sqlmesh

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# A chain of models longer than this is not followed.
MOST_STEPS = 12

_FLOATS = ("FLOAT", "DOUBLE")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPLTZ", "TIMESTAMPTZ", "DATETIME")
TIMESTAMPS = frozenset({*_TIMES} - {"DATE"})
_TEXTS = ("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "NAME")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19, "INT128": 38, "INT256": 76}


def _has_same_columns(before: Model, after: Model) -> bool:
    """Whether definition and source columns are the same; then no model needs rendering."""
    return bool(
        before.mapping_schema == after.mapping_schema and before.data_hash == after.data_hash
    )


def list_column_changes(
    before: Model,
    after: Model,
    readers: Iterable[Model] = (),
    *,
    queries: ModelQueries | None = None,
) -> list[ColumnChange]:
    """Lists the changes of a model's columns.

    Args:
        before, after: the model on both sides; None if a side has none.
        readers: models of the head that read it directly.
        queries: renderings that are shared; None if there are none.

    Returns:
        Added, dropped and retyped columns, in the order of the old and then the new definition.
        No changes if the columns of a side are unknown (SELECT * of an unknown table).
    """
    if before is not None and after is not None and _has_same_columns(before, after):
        return []
    old, new = list_known_types(before), list_known_types(after)
    if old is None or new is None:
        return []
    queries = queries or ModelQueries()
    readers = list(readers)
    dialect = (after or before).dialect
    changes: list[ColumnChange] = []
    for name, kind in old.items():
        replaced = new.get(name)
        if replaced is None or compare_types(kind, replaced) is not None:
            fqn = (before or after).fqn
            changes.append(
                ColumnChange(
                    name=name,
                    before=kind.sql(dialect=dialect),
                    after=None if replaced is None else replaced.sql(dialect=dialect),
                    readers=[m.fqn for m in readers if reads_column(m, fqn, name, queries)],
                )
            )
    changes.extend(
        ColumnChange(name=name, before=None, after=kind.sql(dialect=dialect), readers=[])
        for name, kind in new.items()
        if name not in old
    )
    return changes


def list_known_types(model: Model | None) -> Mapping[str, exp.DataType] | None:
    """Lists column types by name in lower case; None if the columns are unknown."""
    if model is None:
        return {}
    try:
        types = read_column_types_of_sqlmesh(model)
    except Exception:  # a rendering of the project may raise anything
        return None
    if types is None or "*" in types:
        return None
    return {name.lower(): kind for name, kind in types.items()}


def reads_column(model: Model, fqn: str, column: str, queries: ModelQueries) -> bool:
    """Whether `model` reads `column` of the model `fqn`.

    For a Python model only the text of its code is known: the name in any place counts as reading.
    """
    if model.is_python:
        word = re.compile(rf"\b{re.escape(column)}\b", re.IGNORECASE)
        return any(word.search(item.payload) for item in model.python_env.values())
    query = queries.query_of(model)
    if query is None:
        return False
    wanted = plain_name(fqn)
    for select in query.known_root.selects:
        aliases = {
            alias
            for alias, source in select.sources.items()
            if isinstance(source, exp.Table) and _is_named_table(source, wanted)
        }
        if len(select.read_sources) == 1 and aliases >= select.read_sources.keys():
            aliases.add("")
        if any(
            item.name.lower() == column.lower() and item.table.lower() in aliases
            for item in select.columns
        ):
            return True
    return False


def _is_named_table(table: exp.Table, wanted: str) -> bool:
    name = table_name(table)
    return name == wanted or wanted.endswith(f".{name}")


def compare_types(old: exp.DataType, new: exp.DataType) -> str | None:
    """Compares two types: returns "wider", "narrower", "other", or None if the type stays.

    An unknown type is no change. Another length of a VARCHAR is no change either: Spark casts each
    VARCHAR to STRING.
    """
    if old == new or _is_unknown(old) or _is_unknown(new):
        return None
    before, after = old.this.value, new.this.value
    for family, compare in _FAMILIES:
        if before in family and after in family:
            return compare(old, new)
    if before == after and not old.expressions and not new.expressions:
        return None
    return "other"


def is_assumed_bigint(
    model: Model | None, name: str, models: Mapping[str, Model], queries: ModelQueries
) -> bool:
    """Whether a column is BIGINT only for the parser.

    In COALESCE, IF and CASE the parser makes a BIGINT from INT and 0, and Spark makes an INT.

    Args:
        models: the models by full name, in lower case and without quotes.
    """
    for _ in range(MOST_STEPS):
        query = queries.query_of(model) if model is not None else None
        if model is None or query is None or getattr(model, "columns_to_types_", None):
            return False
        branch = query.root.only_branch
        item = branch.find_result(name) if branch is not None else None
        if branch is None or not isinstance(item, exp.Column):
            parts = _list_alternatives(item)
            return bool(parts) and all(
                part.type is not None
                and _DIGITS.get(str(part.type.this.value), 99) <= _DIGITS["INT"]
                for part in parts
            )
        # A column is not followed through the model's own CTEs.
        source = branch.find_source(item)
        if not isinstance(source, exp.Table) or table_name(source) == plain_name(model.fqn):
            return False
        model, name = models.get(table_name(source)), item.name.lower()
    return False


def _list_alternatives(node: exp.Expr | None) -> list[exp.Expr]:
    """Lists the values that COALESCE, IF or CASE choose from."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    if isinstance(node, exp.If):
        return [part for part in (node.args.get("true"), node.args.get("false")) if part]
    if isinstance(node, exp.Case):
        chosen = [branch.args.get("true") for branch in node.args.get("ifs") or []]
        return [part for part in (*chosen, node.args.get("default")) if part]
    return []


def _compare_times(old: exp.DataType, new: exp.DataType) -> str | None:
    before, after = old.this.value, new.this.value
    if before == after or "DATE" not in {before, after}:
        return None
    return "narrower" if after == "DATE" else "wider"


def _compare_exact_numbers(old: exp.DataType, new: exp.DataType) -> str | None:
    """Compares whole numbers and decimals by their digits before and after the point."""
    (whole_old, scale_old), (whole_new, scale_new) = _count_digits(old), _count_digits(new)
    if (whole_old, scale_old) == (whole_new, scale_new):
        return None if old.this == new.this else "wider"
    return "wider" if whole_new >= whole_old and scale_new >= scale_old else "narrower"


def _count_digits(kind: exp.DataType) -> tuple[int, int]:
    name = kind.this.value
    if name in _DIGITS:
        return _DIGITS[name], 0
    precision, scale = _read_precision_and_scale(kind)
    return precision - scale, scale


def _compare_floats(old: exp.DataType, new: exp.DataType) -> str | None:
    before, after = _FLOATS.index(old.this.value), _FLOATS.index(new.this.value)
    return None if before == after else "wider" if before < after else "narrower"


def _is_unknown(kind: exp.DataType) -> bool:
    return bool(kind.is_type(exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL))


def _read_precision_and_scale(kind: exp.DataType) -> tuple[int, int]:
    """Reads precision and scale of a DECIMAL; Spark's default is (10, 0)."""
    numbers = [int(n) for item in kind.expressions if (n := item.name or item.sql()).isdigit()]
    precision = numbers[0] if numbers else 10
    return precision, numbers[1] if len(numbers) > 1 else 0


_FAMILIES = (
    (_TEXTS, lambda old, new: None),  # a text of another type is the same text
    (_TIMES, _compare_times),
    ((*_DIGITS, "DECIMAL"), _compare_exact_numbers),
    (_FLOATS, _compare_floats),
)
