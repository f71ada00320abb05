"""Each class that a docstring says a call raises is an error that exists."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "ci_bot").rglob("*.py"))
# Libraries whose errors pass through code of ours that does not import them.
LIBRARIES = ("jinja2", "py4j.protocol", "pyspark.errors", "sqlmesh.utils.errors")

_SECTION = re.compile(r"^Raises:\n((?: +\S.*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"((?:`?[\w.]+`?(?:, | or |, or )?)+): ")
_SENTENCE = re.compile(r"\bRaises `?([A-Z]\w+(?:(?:, | or )`?[A-Z]\w+`?)*)")
_SEPARATOR = re.compile(r",? or |, ")


def list_classes_that_are_raised(docstring: str) -> Iterator[str]:
    """The names in the section `Raises:` and in sentences that begin with "Raises".

    An entry without a name is yielded as it is, because no class is called so.
    """
    for section in _SECTION.findall(docstring):
        lines = [line for line in section.split("\n") if line.strip()]
        indent = min(len(line) - len(line.lstrip()) for line in lines)
        for line in lines:
            if line[indent] != " ":
                entry = _ENTRY.match(line[indent:])
                yield from _SEPARATOR.split(entry[1].replace("`", "")) if entry else [line.strip()]
    for names in _SENTENCE.findall(" ".join(docstring.split())):
        yield from _SEPARATOR.split(names.replace("`", ""))


@cache
def read_tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


@cache
def list_foreign_errors() -> frozenset[str]:
    """The errors of Python and of the libraries, by name."""
    places = [builtins, *map(importlib.import_module, LIBRARIES)]
    return frozenset(
        f"{prefix}{name}"
        for place in places
        for prefix in ("", f"{place.__name__}.")
        for name, value in vars(place).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    )


@cache
def list_own_errors() -> frozenset[str]:
    """The classes of the package that have an error of Python or of a library above them."""
    above = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for file in SOURCES
        for node in ast.walk(read_tree(file))
        if isinstance(node, ast.ClassDef)
    }
    found: set[str] = set()
    known = set(list_foreign_errors())
    while more := {name for name, bases in above.items() if bases & known} - found:
        found |= more
        known |= more
    return frozenset(found)


def list_imported_names(tree: ast.Module) -> set[str]:
    return {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }


def list_unknown_classes(tree: ast.Module) -> Iterator[str]:
    """Each function or class with a name behind "Raises" that is no error."""
    known = list_own_errors() | list_foreign_errors()
    imported = list_imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for name in list_classes_that_are_raised(ast.get_docstring(node) or ""):
                if name not in known and name not in imported:
                    yield f"{node.name}: {name}"


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("Reads it.\n\nRaises:\n    BadInput: it is wrong.\n", ["BadInput"]),
        ("Reads it.\n\nRaises:\n    A, B or C: one of\n        Many: words.\n", ["A", "B", "C"]),
        ("Reads it.\n\nRaises:\n    A or b.C: both.\n    D: other.\n", ["A", "b.C", "D"]),
        ("Reads it.\n\nArgs:\n    A: a name.\n\nRaises:\n    B: no.\n", ["B"]),
        ("Reads it.\n\nRaises:\n    what the caller raises.\n", ["what the caller raises."]),
        ("Reads it. Raises `BadInput` if it is set.", ["BadInput"]),
        ("Reads it. Raises BadInput, OSError or\nKeyError.", ["BadInput", "OSError", "KeyError"]),
        ("Raises the limit.", []),
    ],
)
def test_raised_classes__are_found_in_a_docstring(docstring: str, names: list[str]) -> None:
    assert list(list_classes_that_are_raised(docstring)) == names


def test_unknown_class__is_found() -> None:
    tree = ast.parse(
        'def read():\n    """Reads it.\n\n    Raises:\n        Refused: no.\n    """\n'
    )
    assert list(list_unknown_classes(tree)) == ["read: Refused"]
    assert {"BadInput", "RequestRefused", "RunCancelled"} <= list_own_errors()
    assert "RequestedReviewCommits" not in list_own_errors()


def test_docstrings__name_errors_that_exist() -> None:
    found = {str(file): list(list_unknown_classes(read_tree(file))) for file in SOURCES}
    assert {file: wrong for file, wrong in found.items() if wrong} == {}
