"""Constructs that only take space in the code, or that no tool reads, do not come back."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "ci_bot").rglob("*.py"))
LONGEST_LINE = 100
MOST_LINES = 500
Find = Callable[[str], Iterator[str]]
LITERALS = ast.Tuple | ast.List | ast.Set


@cache
def read_source(file: Path) -> str:
    return file.read_text("utf-8")


def list_imports_on_too_many_lines(source: str) -> Iterator[str]:
    """Imports over several lines that would fit on one; a comment in one needs its lines."""
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.lineno != node.end_lineno:
            written = " " * node.col_offset + ast.unparse(node)
            block = lines[node.lineno - 1 : node.end_lineno]
            if len(written) <= LONGEST_LINE and not any("#" in line for line in block):
                yield written.strip()


def list_texts_below_assignments(source: str) -> Iterator[str]:
    """Strings that describe the assignment above them; a comment above it does so elsewhere."""
    body = ast.parse(source).body
    for node in body[1:]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def list_unpacked_literals(source: str) -> Iterator[str]:
    """Literals that are unpacked into another one, as `(*("a", "b"), "c")`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, LITERALS):
            parts = [one.value for one in node.elts if isinstance(one, ast.Starred)]
            yield from (ast.unparse(part) for part in parts if isinstance(part, LITERALS))
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            parts = [value for key, value in pairs if key is None]
            yield from (ast.unparse(part) for part in parts if isinstance(part, ast.Dict))


@pytest.mark.parametrize(
    ("find", "source", "found"),
    [
        (list_imports_on_too_many_lines, "from a import (\n    b,\n)\n", ["from a import b"]),
        (list_imports_on_too_many_lines, "from a import (\n    b,  # why\n)\n", []),
        (list_imports_on_too_many_lines, "from a import b\n", []),
        (list_texts_below_assignments, '"""A module."""\nA = 1\n"""One."""\n', ["One."]),
        (list_texts_below_assignments, '"""A module."""\n# One.\nA = 1\n', []),
        (list_unpacked_literals, 'A = (*("a", "b"), "c")\n', ["('a', 'b')"]),
        (list_unpacked_literals, 'A = {**{"a": 1}, "b": 2}\n', ["{'a': 1}"]),
        (list_unpacked_literals, "A = (*B, *(x for x in C))\n", []),
    ],
)
def test_construct__is_found(find: Find, source: str, found: list[str]) -> None:
    assert list(find(source)) == found


@pytest.mark.parametrize(
    "find", [list_imports_on_too_many_lines, list_texts_below_assignments, list_unpacked_literals]
)
def test_code__has_none_of_them(find: Find) -> None:
    found = {str(file.relative_to(ROOT)): list(find(read_source(file))) for file in SOURCES}
    assert {file: parts for file, parts in found.items() if parts} == {}


def test_modules__have_at_most_five_hundred_lines() -> None:
    lengths = {file: len(read_source(file).splitlines()) for file in SOURCES}

    assert [file.name for file, lines in lengths.items() if lines > MOST_LINES] == []
