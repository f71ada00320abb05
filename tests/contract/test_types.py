"""SQLMesh and sqlglot are typed, so what is theirs has its type in our signatures, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "ci_bot").rglob("*.py"))
THEIRS = frozenset({"context", "model", "plan", "snapshot"})
BARE = re.compile(r"Any( \| None)?|None \| Any|Optional\[Any\]")
# Parameters of these names that are no object of SQLMesh's, and why.
OTHERS = {
    ("input_size_measurement.py", "plan"): "a plan of Spark's, which is an object of its JVM",
}
MOST_OPEN_DICTS = 14


def list_untyped(text: str) -> Iterator[str]:
    """The parameters and attributes that are called as an object of SQLMesh's, and typed Any."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            pairs = [(one.arg, one.annotation) for one in named]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(ast.unparse(node.target).rpartition(".")[2], node.annotation)]
        else:
            continue
        for name, annotation in pairs:
            if name in THEIRS and annotation and BARE.fullmatch(ast.unparse(annotation)):
                yield name


def list_bound_to_sqlglot_30(text: str) -> list[int]:
    """Lines that need `exp.Expr` when they run: sqlglot has it since 30 alone.

    With older ones it is an AttributeError. In an annotation nobody evaluates it.
    """
    tree = ast.parse(text)
    notes = [
        note
        for node in ast.walk(tree)
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(note, ast.expr)
    ]
    quiet = {id(part) for note in notes for part in ast.walk(note)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "exp.Expr"
        if id(node) not in quiet
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(model: Any) -> None: ...", ["model"]),
        ("class A:\n    context: Any | None = None", ["context"]),
        ("def f(model: Model, context: Context | None, **plan: Any) -> Any: ...", []),
    ],
)
def test_untyped__is_found(text: str, found: list[str]) -> None:
    assert list(list_untyped(text)) == found


def test_objects_of_sqlmesh__are_typed() -> None:
    untyped = {
        (path.name, name) for path in SOURCES for name in list_untyped(path.read_text("utf-8"))
    }
    assert untyped == set(OTHERS)


def test_open_dictionaries__do_not_come_back() -> None:
    lines = [
        f"{path.name}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text("utf-8").splitlines()
        if "dict[str, Any]" in line
    ]
    assert len(lines) <= MOST_OPEN_DICTS, "\n".join(lines)


def test_trees__are_compared_with_what_every_version_has() -> None:
    assert list_bound_to_sqlglot_30("isinstance(tree, exp.Expr)") == [1]
    assert not list_bound_to_sqlglot_30("def f(tree: exp.Expr) -> list[exp.Expr]: ...")
    found = {
        f"{path.name}:{number}"
        for path in SOURCES
        for number in list_bound_to_sqlglot_30(path.read_text("utf-8"))
    }
    assert not found


# Python 3.10 reads what `isoformat` writes, and no `Z`, no single digit of a second.
_READABLE = re.compile(r"\d{4}-\d\d-\d\d(.\d\d(:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?)?([+-]\d\d:\d\d)?)?")


def list_unreadable_times(text: str) -> list[str]:
    """Times that code gives `fromisoformat` and that the oldest Python cannot read.

    Code is tested with a newer one, and a time at a module's own level ends every run.
    """
    return [
        constant.value
        for statement in ast.parse(text).body
        if "fromisoformat(" in ast.unparse(statement)
        for constant in ast.walk(statement)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
        if re.match(r"\d{4}-\d\d-\d\d", constant.value)
        if not _READABLE.fullmatch(constant.value)
    ]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("2024-01-31", False),
        ("2024-01-31 12:30:00", False),
        ("2024-01-31T12:30:00.500+00:00", False),
        ("2024-01-31 12:30:00.5", True),
        ("2024-01-31T12:30:00Z", True),
    ],
)
def test_times__that_the_oldest_python_cannot_read_are_found(written: str, found: bool) -> None:
    text = f"TIMES = tuple(datetime.fromisoformat(text) for text in ({written!r},))"
    assert list_unreadable_times(text) == ([written] if found else [])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_times__of_our_code_are_read_by_the_oldest_python(source: Path) -> None:
    assert list_unreadable_times(source.read_text("utf-8")) == []
