"""Casts and arithmetic: DuckDB's text for what Spark computes from numbers, texts and times.

Results get Spark's types: decimals are exact, and a division by zero is NULL. A cast that Spark
refuses in ANSI mode, and that is NULL in the other mode, is always NULL here.
"""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.worker.duckdb_trials.value_types import (
    BIGINT,
    DOUBLE,
    UntriedError,
    ValueType,
    find_common_duckdb_type,
    make_duckdb_decimal,
    widen_to_duckdb_decimal,
)

# These are created in each session. A text that only Spark can read in some form (a zone, `NaN`) is
# an error, and data on which one side fails prove nothing. Here and below, a function of a list of
# one item computes its argument once: a macro would write it at each place, and nested macros would
# grow too large for DuckDB to read in time.
CAST_MACROS = (
    r"""ci_whole(s) AS list_transform([s], lambda s: CASE
        WHEN s IS NULL THEN NULL
        WHEN regexp_full_match(trim(s), '[+-]?[0-9]+([.][0-9]*)?')
        THEN TRY_CAST(regexp_extract(trim(s), '^[+-]?[0-9]+') AS HUGEINT)
        WHEN regexp_full_match(trim(s), '[+-]?[.][0-9]*') THEN error('no whole part') END)[1]""",
    r"""ci_number(s) AS list_transform([s], lambda s: CASE
        WHEN regexp_full_match(trim(s), '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?')
        THEN trim(s)
        WHEN regexp_matches(lower(trim(s)), '^[+-]?(nan|inf|[0-9.]+(e[+-]?[0-9]+)?[df])')
        THEN error('a number of another kind') END)[1]""",
    r"""ci_date(s) AS list_transform([s], lambda s: CASE
        WHEN regexp_full_match(trim(s), '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?')
        THEN TRY_CAST(regexp_extract(trim(s), '^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}') AS DATE)
        WHEN regexp_full_match(trim(s), '[0-9]{4}') THEN TRY_CAST(trim(s) || '-01-01' AS DATE)
        WHEN regexp_full_match(trim(s), '[0-9]{4}-[0-9]{1,2}')
        THEN TRY_CAST(trim(s) || '-01' AS DATE)
        WHEN regexp_matches(trim(s), '^[+-]?[0-9]{5}')
        THEN error('a year of many digits') END)[1]""",
    r"""ci_timestamp(s) AS list_transform([s], lambda s: CASE
        WHEN regexp_full_match(trim(s),
            '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{1,2}'
            || '(:[0-9]{1,2}([.][0-9]{1,6})?)?Z?')
        THEN TRY_CAST(replace(replace(trim(s), 'T', ' '), 'Z', '') AS TIMESTAMP)
        WHEN regexp_full_match(trim(s), '[0-9]{4}(-[0-9]{1,2}){0,2}')
        THEN CAST(ci_date(s) AS TIMESTAMP)
        WHEN regexp_matches(trim(s), '[0-9]:|^T') THEN error('a time of another kind') END)[1]""",
    r"""ci_boolean(s) AS list_transform([s], lambda s: CASE
        WHEN lower(trim(s)) IN ('t', 'true', 'y', 'yes', '1') THEN TRUE
        WHEN lower(trim(s)) IN ('f', 'false', 'n', 'no', '0') THEN FALSE END)[1]""",
)
_PLAIN, _MAYBE = "CAST({0} AS {1})", "TRY_CAST({0} AS {1})"
_NUMBER = "TRY_CAST(ci_number({0}) AS {1})"
# It cuts the number, because DuckDB would round it.
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
    # By its digits, as in Spark: 1.005 is 1.01.
    ("double", "decimal"): "TRY_CAST(CAST({0} AS VARCHAR) AS {1})",
    ("double", "boolean"): "({0} <> 0)",
    ("date", "timestamp"): _PLAIN,
    ("date", "string"): _PLAIN,
    ("timestamp", "date"): _PLAIN,
    ("timestamp", "string"): _PLAIN,
    ("interval", "interval"): _PLAIN,
}


def write_duckdb_cast(text: str, source: ValueType, target: ValueType) -> str:
    """Returns DuckDB's text for Spark's cast of `text`.

    Raises:
        UntriedError: DuckDB has no such cast.
    """
    if source == target:
        return text
    if source.name == "null":
        return f"CAST(NULL AS {target.duckdb})"
    template = _CASTS.get((_name_duckdb_type_family(source), _name_duckdb_type_family(target)))
    if template is None:
        raise UntriedError(f"a cast from {source} to {target}")
    return template.format(text, target.duckdb)


def _name_duckdb_type_family(kind: ValueType) -> str:
    if kind.is_interval:
        return "interval"
    return "whole" if kind.is_whole else kind.name


# Decimals are computed as whole numbers in units of their last digit.
ARITHMETIC_MACROS = (
    "ci_units(d) AS CAST(replace(CAST(d AS VARCHAR), '.', '') AS HUGEINT)",
    "ci_power(n) AS CAST('1' || repeat('0', n) AS HUGEINT)",
    # The quotient of whole numbers; one half and more is rounded away from zero.
    """ci_quotient(a, b) AS list_transform([{'a': a, 'b': b}], lambda p: CASE WHEN p.b <> 0 THEN
        (CASE WHEN (p.a < 0) <> (p.b < 0) THEN -1 ELSE 1 END)
        * ((2 * abs(p.a) + abs(p.b)) // (2 * abs(p.b))) END)[1]""",
    # The same, but one half is rounded to the even number.
    """ci_even_quotient(a, b) AS list_transform([{'a': a, 'b': b}], lambda p:
        (CASE WHEN p.a < 0 THEN -1 ELSE 1 END) * (abs(p.a) // p.b
        + CASE WHEN 2 * (abs(p.a) % p.b) > p.b
            OR (2 * (abs(p.a) % p.b) = p.b AND (abs(p.a) // p.b) % 2 = 1)
        THEN 1 ELSE 0 END))[1]""",
    """ci_from_units(n, s) AS list_transform([n], lambda n: CASE WHEN s = 0 THEN CAST(n AS VARCHAR)
        ELSE CASE WHEN n < 0 THEN '-' ELSE '' END || CAST(abs(n) // ci_power(s) AS VARCHAR) || '.'
        || lpad(CAST(abs(n) % ci_power(s) AS VARCHAR), s, '0') END)[1]""",
)
_LEAST_QUOTIENT_SCALE = 6


def write_duckdb_arithmetic(
    sign: str, one: str, first: ValueType, other: str, second: ValueType
) -> tuple[str, ValueType]:
    """Returns DuckDB's text for `one sign other`, and its type.

    Raises:
        UntriedError: The operands have other types.
    """
    if not all(kind.is_numeric or kind.name == "null" for kind in (first, second)):
        raise UntriedError(f"`{sign}` between {first} and {second}")
    kinds = {first.name, second.name}
    if "decimal" in kinds and "double" not in kinds and "null" not in kinds:
        return _write_duckdb_decimals(
            sign, one, widen_to_duckdb_decimal(first), other, widen_to_duckdb_decimal(second)
        )
    kind = find_common_duckdb_type(first, second)
    if sign == "/" or kind is None or kind.name == "null":
        kind = DOUBLE
    left, right = write_duckdb_cast(one, first, kind), write_duckdb_cast(other, second, kind)
    if sign == "/":
        return f"({left} / NULLIF({right}, 0))", kind
    if sign == "%":
        return f"CAST({left} % NULLIF({right}, 0) AS {kind.duckdb})", kind
    if sign == "div":
        if not kind.is_whole:
            raise UntriedError(f"`div` between {first} and {second}")
        return f"CAST({left} // NULLIF({right}, 0) AS BIGINT)", BIGINT
    return f"({left} {sign} {right})", kind


def _write_duckdb_decimals(
    sign: str, one: str, first: ValueType, other: str, second: ValueType
) -> tuple[str, ValueType]:
    left = f"CAST({one} AS {first.duckdb})"
    right = f"CAST({other} AS {second.duckdb})"
    whole = max(first.digits - first.scale, second.digits - second.scale)
    scale = max(first.scale, second.scale)
    if sign in {"+", "-"}:
        kind = make_duckdb_decimal(whole + scale + 1, scale)
        wide = f"DECIMAL(38, {scale})"
        return (
            f"TRY_CAST(CAST({left} AS {wide}) {sign} CAST({right} AS {wide}) AS {kind.duckdb})",
            kind,
        )
    units, divisor = f"ci_units({left})", f"ci_units({right})"
    if sign == "*":
        kind = make_duckdb_decimal(first.digits + second.digits + 1, first.scale + second.scale)
        product = f"({units} * {divisor})"
        return _read_duckdb_units(product, first.scale + second.scale, kind), kind
    if sign == "/":
        scale = max(_LEAST_QUOTIENT_SCALE, first.scale + second.digits + 1)
        kind = make_duckdb_decimal(first.digits - first.scale + second.scale + scale, scale)
        shift = kind.scale - first.scale + second.scale
        above, below = (shift, 0) if shift >= 0 else (0, -shift)
        quotient = f"ci_quotient({units} * ci_power({above}), {divisor} * ci_power({below}))"
        return _read_duckdb_units(quotient, kind.scale, kind), kind
    if sign == "%":
        least = min(first.digits - first.scale, second.digits - second.scale)
        kind = make_duckdb_decimal(least + scale, scale)
        wide = f"DECIMAL(38, {scale})"
        units, divisor = (f"ci_units(CAST({side} AS {wide}))" for side in (left, right))
        return _read_duckdb_units(f"({units} % NULLIF({divisor}, 0))", scale, kind), kind
    raise UntriedError(f"`{sign}` between {first} and {second}")


def _read_duckdb_units(text: str, scale: int, kind: ValueType) -> str:
    """Returns the decimal that has this number of units of the last of `scale` digits."""
    return f"TRY_CAST(ci_from_units({text}, {scale}) AS {kind.duckdb})"


def write_duckdb_average(total: str, count: str, kind: ValueType) -> tuple[str, ValueType]:
    """Returns DuckDB's text for the average of decimals, from sum and number, and its type."""
    found = make_duckdb_decimal(kind.digits + 4, kind.scale + 4)
    shift = found.scale - kind.scale
    units = f"ci_units(CAST({total} AS DECIMAL(38, {kind.scale})))"
    return _read_duckdb_units(
        f"ci_quotient({units} * ci_power({shift}), {count})", found.scale, found
    ), found


def write_duckdb_round(text: str, kind: ValueType, places: int) -> tuple[str, ValueType]:
    """Returns DuckDB's text for Spark's `round(text, places)`, and its type.

    One half and more is rounded away from zero, decimals by their digits.
    """
    if kind.is_whole and places >= 0:
        return text, kind
    if kind.name == "double":
        if places < 0:
            raise UntriedError("round to tens")
        # By the digits that are shown, which BigDecimal reads.
        return f"CAST(CAST(CAST({text} AS VARCHAR) AS DECIMAL(38, {places})) AS DOUBLE)", DOUBLE
    if kind.name != "decimal" or places < 0:
        raise UntriedError(f"round of {kind}")
    kept = min(places, kind.scale)
    found = make_duckdb_decimal(
        kind.digits - kind.scale + kept + (1 if kept < kind.scale else 0), kept
    )
    return f"CAST({text} AS {found.duckdb})", found


# Digits after the point of a double that `bround` reads; doubles of the judge show fewer.
_DOUBLE_SCALE = 15


def write_duckdb_even_round(text: str, kind: ValueType, places: int) -> tuple[str, ValueType]:
    """Returns DuckDB's text for Spark's `bround(text, places)`, and its type.

    One half is rounded to the even digit.
    """
    if places < 0 or not kind.is_numeric:
        raise UntriedError(f"bround() of {kind}")
    if kind.is_whole or (kind.name == "decimal" and places >= kind.scale):
        return text, kind
    scale = kind.scale if kind.name == "decimal" else _DOUBLE_SCALE
    # By the digits that are shown, which BigDecimal reads.
    shown = (
        text if kind.name == "decimal" else f"CAST(CAST({text} AS VARCHAR) AS DECIMAL(38, {scale}))"
    )
    units = f"ci_even_quotient(ci_units({shown}), ci_power({scale - places}))"
    if kind.name != "decimal":
        return f"CAST(ci_from_units({units}, {places}) AS DOUBLE)", DOUBLE
    found = make_duckdb_decimal(kind.digits - kind.scale + places + 1, places)
    return _read_duckdb_units(units, places, found), found
