"""Expressions in the order of Spark's grammar, and every pair of its operators."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.query_pairs.choices import Choices

COLUMNS = {
    "int": ("a", "b", "c", "id"),
    "boolean": ("p", "q"),
    "string": ("s", "r"),
    "date": ("d", "e"),
    "array": ("xs", "ys"),
}
_LITERALS = {
    "int": ("0", "1", "2", "-1"),
    "boolean": ("true", "false", "NULL"),
    "string": ("'x'", "'1'", "''"),
    "date": ("DATE'2024-01-31'", "DATE'2024-02-29'"),
    "array": ("array(1, 2)", "array()"),
}
_NUMBERS = ("+", "-", "*", "/", "%", "DIV", "&", "|", "^")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "!=", "==")

# Operand's kind, by operator.
BINARY = {
    **dict.fromkeys(_NUMBERS, "int"),
    **dict.fromkeys(_COMPARISONS, "int"),
    "||": "string",
    "AND": "boolean",
    "OR": "boolean",
    "LIKE": "string",
    "RLIKE": "string",
    "IS DISTINCT FROM": "int",
    "IS NOT DISTINCT FROM": "int",
}
PREFIX = {"NOT": "boolean", "-": "int", "~": "int", "+": "int", "!": "boolean"}
POSTFIX = {
    "IS NULL": "int",
    "IS NOT NULL": "int",
    "IS TRUE": "boolean",
    "IS NOT TRUE": "boolean",
    "IS FALSE": "boolean",
    "IS NOT FALSE": "boolean",
    "BETWEEN 0 AND 2": "int",
    "NOT BETWEEN 0 AND 2": "int",
    "IN (1, 2)": "int",
    "NOT IN (1, 2)": "int",
    "LIKE '1%'": "string",
    "NOT LIKE '1%'": "string",
    "RLIKE '1'": "string",
}


def operator_pairs() -> Iterator[tuple[str, str, str]]:
    """Name and both texts: two operators side by side, and each way of grouping them."""
    for (one, first), (other, second) in product(BINARY.items(), repeat=2):
        for kinds in {(first, first, second), (first, second, second)}:
            x, y, z = (COLUMNS[kind][n % 2] for n, kind in enumerate(kinds))
            z = "c" if z == x == "a" else z
            texts = (f"{x} {one} {y} {other} {z}", f"({x} {one} {y}) {other} {z}")
            third = f"{x} {one} ({y} {other} {z})"
            yield f"{one} {other} left", *texts
            yield f"{one} {other} right", texts[0], third
            yield f"{one} {other} both", texts[1], third
            yield f"{one} {other} first swapped", texts[0], f"{y} {one} {x} {other} {z}"
            yield f"{one} {other} last swapped", texts[0], f"{x} {one} {z} {other} {y}"
    for (one, first), (other, second) in product(PREFIX.items(), BINARY.items()):
        x, y = COLUMNS[first][0], COLUMNS[second][1]
        yield f"{one} {other} whole", f"{one} {x} {other} {y}", f"{one} ({x} {other} {y})"
        yield f"{one} {other} first", f"{one} {x} {other} {y}", f"({one} {x}) {other} {y}"
        yield f"{other} {one} alone", f"{y} {other} {one} {x}", f"{y} {other} ({one} {x})"
    for (one, first), (other, second) in product(BINARY.items(), POSTFIX.items()):
        x, y = COLUMNS[first][0], COLUMNS[second][1]
        yield f"{one} {other} whole", f"{x} {one} {y} {other}", f"({x} {one} {y}) {other}"
        yield f"{one} {other} last", f"{x} {one} {y} {other}", f"{x} {one} ({y} {other})"
        yield f"{other} {one} before", f"{y} {other} {one} {x}", f"({y} {other}) {one} {x}"
    for (one, first), (other, _) in product(PREFIX.items(), POSTFIX.items()):
        x = COLUMNS[first][0]
        yield f"{one} {other} whole", f"{one} {x} {other}", f"{one} ({x} {other})"
        yield f"{one} {other} first", f"{one} {x} {other}", f"({one} {x}) {other}"
    for (one, first), (other, _) in product(POSTFIX.items(), repeat=2):
        x = COLUMNS[first][0]
        yield f"{one} {other} after", f"{x} {one} {other}", f"({x} {one}) {other}"
    for one, other in product(PREFIX, repeat=2):
        yield f"{one} {other} before", f"{one} {other} a", f"{one} ({other} a)"


def expression(c: Choices, kind: str, depth: int = 2) -> str:
    """An expression of a kind; parentheses come and go as they like."""
    if depth == 0 or c.pick("leaf", (True, False, False)):
        return c.pick("column", (*COLUMNS[kind], *COLUMNS[kind], *_LITERALS[kind]))
    return str(_MAKERS[kind](c, depth - 1))


def _part(c: Choices, name: str, kind: str, depth: int) -> str:
    text = expression(c.at(name), kind, depth)
    return f"({text})" if c.spell(f"{name}.parentheses", (False, True)) else text


def _sides(c: Choices, kind: str, depth: int) -> tuple[str, str]:
    one, other = _part(c, "left", kind, depth), _part(c, "right", kind, depth)
    return (one, other) if c.spell("sides", (True, False)) else (other, one)


def _number(c: Choices, depth: int) -> str:
    shape = c.pick("shape", ("binary", "binary", "binary", "prefix", "call", "if", "of other"))
    if shape == "binary":
        one, other = _sides(c, "int", depth)
        return f"{one} {c.pick('operator', _NUMBERS)} {other}"
    if shape == "prefix":
        return f"{c.pick('operator', ('-', '~', '+'))} {_part(c, 'left', 'int', depth)}"
    if shape == "call":
        one, other = _sides(c, "int", depth)
        name = c.spell("call", ("COALESCE", "NULLIF", "GREATEST", "LEAST", "NVL", "IFNULL", "MOD"))
        return f"{name}({one}, {other})"
    if shape == "if":
        test = expression(c.at("test"), "boolean", depth)
        one, other = _sides(c, "int", depth)
        return c.spell(
            "if",
            (
                f"IF({test}, {one}, {other})",
                f"CASE WHEN {test} THEN {one} ELSE {other} END",
                f"CASE WHEN NOT ({test}) THEN {other} ELSE {one} END",
                f"CASE {test} WHEN true THEN {one} ELSE {other} END",
                f"NVL2(NULLIF({test}, false), {one}, {other})",
            ),
        )
    return c.pick(
        "of",
        (
            f"SIZE({expression(c.at('array'), 'array', 0)})",
            f"LENGTH({expression(c.at('text'), 'string', depth)})",
            f"CAST({expression(c.at('truth'), 'boolean', depth)} AS INT)",
            f"CAST({expression(c.at('cast'), 'string', depth)} AS INT)",
            f"DATEDIFF({', '.join(_sides(c.at('days'), 'date', 0))})",
        ),
    )


def _truth(c: Choices, depth: int) -> str:
    shape = c.pick("shape", ("logic", "logic", "comparison", "comparison", "not", "test", "test"))
    if shape == "logic":
        one, other = _sides(c, "boolean", depth)
        return f"{one} {c.pick('operator', ('AND', 'OR'))} {other}"
    if shape == "comparison":
        one, other = _sides(c, c.pick("kind", ("int", "int", "string", "boolean", "date")), depth)
        return f"{one} {c.spell('operator', _COMPARISONS)} {other}"
    if shape == "not":
        return f"{c.spell('not', ('NOT', '!'))} {_part(c, 'left', 'boolean', depth)}"
    kind = c.pick("kind", ("int", "string", "boolean"))
    of_kind = [test for test, taken in POSTFIX.items() if taken in (kind, "int")]
    return f"{_part(c, 'left', kind, depth)} {c.spell('test', of_kind)}"


def _text(c: Choices, depth: int) -> str:
    one, other = _sides(c, "string", depth)
    start, length = c.pick("start", ("1", "0", "2")), c.pick("length", ("1", "2"))
    return c.spell(
        "text",
        (
            f"{one} || {other}",
            f"CONCAT({one}, {other})",
            f"CONCAT_WS('', {one}, {other})",
            f"COALESCE({one}, {other})",
            f"UPPER({one})",
            f"LOWER({one})",
            f"TRIM({one})",
            f"SUBSTRING({one}, {start}, {length})",
            f"SUBSTR({one}, {start}, {length})",
            f"LEFT({one}, {length})",
            f"CAST({expression(c.at('number'), 'int', depth)} AS STRING)",
            f"STRING({expression(c.at('number'), 'int', depth)})",
            f"REPLACE({one}, {other}, 'x')",
        ),
    )


def _date(c: Choices, depth: int) -> str:
    day, days = expression(c.at("day"), "date", depth), c.pick("days", ("1", "30", "31", "-1"))
    return c.spell(
        "date",
        (
            f"DATE_ADD({day}, {days})",
            f"DATE_SUB({day}, {days})",
            f"{day} + INTERVAL '{days}' DAY",
            f"{day} + INTERVAL '1' MONTH",
            f"ADD_MONTHS({day}, 1)",
            f"ADD_MONTHS({day}, -1)",
            f"LAST_DAY({day})",
            f"TRUNC({day}, 'MM')",
            f"TRUNC({day}, 'YEAR')",
            f"CAST(DATE_TRUNC('MONTH', {day}) AS DATE)",
            f"CAST(CAST({day} AS TIMESTAMP) AS DATE)",
        ),
    )


def _array(c: Choices, depth: int) -> str:
    inner = expression(c.at("array"), "array", depth)
    other = expression(c.at("other"), "array", 0)
    name, index = c.spell("name", ("x", "y", "a", "id")), c.spell("index", ("i", "b"))
    return c.spell(
        "array",
        (
            f"TRANSFORM({inner}, {name} -> {name} + a)",
            f"TRANSFORM({inner}, ({name}, {index}) -> {name} - {index})",
            f"TRANSFORM({inner}, ({index}, {name}) -> {name} - {index})",
            f"FILTER({inner}, {name} -> {name} > a)",
            f"FILTER({inner}, {name} -> a < {name})",
            f"FILTER({inner}, {name} -> NOT {name} <= a)",
            f"CONCAT({inner}, {other})",
            f"ARRAY_UNION({inner}, {other})",
            f"ARRAY_DISTINCT({inner})",
            f"ARRAY_SORT({inner})",
            f"SORT_ARRAY({inner})",
            f"REVERSE({inner})",
            f"ZIP_WITH({inner}, {other}, ({name}, {index}) -> {name} - {index})",
            f"ZIP_WITH({inner}, {other}, ({index}, {name}) -> {name} - {index})",
        ),
    )


_MAKERS = {
    "int": _number,
    "boolean": _truth,
    "string": _text,
    "date": _date,
    "array": _array,
}
