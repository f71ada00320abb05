"""Casts of Spark in DuckDB: those that mean the same, and stand-ins for those that do not.

A cast that Spark refuses in ANSI mode and makes NULL elsewhere is NULL here, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.worker.execution.spark_types import UntriedError, ValueType

# Entered into each session. What only some texts can mean in Spark (a zone, `NaN`) is an error, and
# data on which one side fails say nothing.
CAST_MACROS = (
    r"""ci_whole(s) AS CASE
        WHEN s IS NULL THEN NULL
        WHEN regexp_full_match(trim(s), '[+-]?[0-9]+([.][0-9]*)?')
        THEN TRY_CAST(regexp_extract(trim(s), '^[+-]?[0-9]+') AS HUGEINT)
        WHEN regexp_full_match(trim(s), '[+-]?[.][0-9]*') THEN error('no whole part') END""",
    r"""ci_number(s) AS CASE
        WHEN regexp_full_match(trim(s), '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?')
        THEN trim(s)
        WHEN regexp_matches(lower(trim(s)), '^[+-]?(nan|inf|[0-9.]+(e[+-]?[0-9]+)?[df])')
        THEN error('a number of another kind') END""",
    r"""ci_date(s) AS CASE
        WHEN regexp_full_match(trim(s), '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?')
        THEN TRY_CAST(regexp_extract(trim(s), '^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}') AS DATE)
        WHEN regexp_full_match(trim(s), '[0-9]{4}') THEN TRY_CAST(trim(s) || '-01-01' AS DATE)
        WHEN regexp_full_match(trim(s), '[0-9]{4}-[0-9]{1,2}')
        THEN TRY_CAST(trim(s) || '-01' AS DATE)
        WHEN regexp_matches(trim(s), '^[+-]?[0-9]{5}') THEN error('a year of five digits') END""",
    r"""ci_timestamp(s) AS CASE
        WHEN regexp_full_match(trim(s),
            '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{1,2}'
            || '(:[0-9]{1,2}([.][0-9]{1,6})?)?Z?')
        THEN TRY_CAST(replace(replace(trim(s), 'T', ' '), 'Z', '') AS TIMESTAMP)
        WHEN regexp_full_match(trim(s), '[0-9]{4}(-[0-9]{1,2}){0,2}')
        THEN CAST(ci_date(s) AS TIMESTAMP)
        WHEN regexp_matches(trim(s), '[0-9]:|^T') THEN error('a time of another kind') END""",
    r"""ci_boolean(s) AS CASE
        WHEN lower(trim(s)) IN ('t', 'true', 'y', 'yes', '1') THEN TRUE
        WHEN lower(trim(s)) IN ('f', 'false', 'n', 'no', '0') THEN FALSE END""",
)
_PLAIN, _MAYBE = "CAST({0} AS {1})", "TRY_CAST({0} AS {1})"
_NUMBER = "TRY_CAST(ci_number({0}) AS {1})"
# Cut, where DuckDB would round.
_CUT = "CAST(trunc({0}) AS {1})"
_CASTS: Mapping[tuple[str, str], str] = {
    ("string", "whole"): "TRY_CAST(ci_whole({0}) AS {1})",
    ("string", "decimal"): _NUMBER,
    ("string", "double"): _NUMBER,
    ("string", "boolean"): "ci_boolean({0})",
    ("string", "date"): "ci_date({0})",
    ("string", "timestamp"): "ci_timestamp({0})",
    ("boolean", "whole"): _PLAIN,
    ("boolean", "string"): _PLAIN,
    ("whole", "whole"): _PLAIN,
    ("whole", "decimal"): _MAYBE,
    ("whole", "double"): _PLAIN,
    ("whole", "string"): _PLAIN,
    ("whole", "boolean"): "({0} <> 0)",
    ("decimal", "whole"): _CUT,
    ("decimal", "decimal"): _MAYBE,
    ("decimal", "double"): _PLAIN,
    ("decimal", "string"): _PLAIN,
    ("decimal", "boolean"): "({0} <> 0)",
    ("double", "whole"): _CUT,
    # By its digits, as Spark does: 1.005 is 1.01.
    ("double", "decimal"): "TRY_CAST(CAST({0} AS VARCHAR) AS {1})",
    ("double", "boolean"): "({0} <> 0)",
    ("date", "timestamp"): _PLAIN,
    ("date", "string"): _PLAIN,
    ("timestamp", "date"): _PLAIN,
    ("timestamp", "string"): _PLAIN,
}


def write_cast(text: str, source: ValueType, target: ValueType) -> str:
    """DuckDB's text for Spark's cast of `text`. Raises UntriedError if it has none."""
    if source == target:
        return text
    if source.name == "null":
        return f"CAST(NULL AS {target.duckdb})"
    template = _CASTS.get((_name_type_family(source), _name_type_family(target)))
    if template is None:
        raise UntriedError(f"a cast from {source} to {target}")
    return template.format(text, target.duckdb)


def _name_type_family(kind: ValueType) -> str:
    return "whole" if kind.is_whole else kind.name
