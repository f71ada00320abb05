"""Spark's column types, read from their DDL text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ATOM = re.compile(
    r"\s*([a-z][a-z0-9_ ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*(?=[,>]|$)", re.IGNORECASE
)
_FIELD = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^`:<>,]+?))\s*:\s*")
_NESTED = re.compile(r"\s*(struct|array|map)\s*<", re.IGNORECASE)
_COMMA = re.compile(r"\s*,\s*")
_CLOSE = re.compile(r"\s*>\s*")
_PARTS = {"array": 1, "map": 2}
_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}


@dataclass(frozen=True)
class SparkType:
    """A column type. `name` is lower case and holds the whole text of a type we do not know.

    `sizes` are the numbers in brackets. `children` are a struct's fields with their names, an
    array's element, or a map's key and value, the latter three nameless.
    """

    name: str
    sizes: tuple[int, ...] = ()
    children: tuple[tuple[str, SparkType], ...] = ()

    def walk(self) -> Iterator[SparkType]:
        """This type and every type within."""
        yield self
        for _, child in self.children:
            yield from child.walk()

    @property
    def ddl(self) -> str:
        """The type as Spark reads it."""
        if self.name == "struct":
            fields = ",".join(f"`{n.replace('`', '``')}`:{t.ddl}" for n, t in self.children)
            return f"struct<{fields}>"
        if self.children:
            return f"{self.name}<{','.join(child.ddl for _, child in self.children)}>"
        return self.name + (f"({','.join(map(str, self.sizes))})" if self.sizes else "")


def parse(ddl: str) -> SparkType:
    """Reads a type. What cannot be read comes back as a type of that name, equal to itself only."""
    try:
        found, end = _type(ddl, 0)
    except ValueError:
        return SparkType(ddl)
    return SparkType(ddl) if ddl[end:].strip() else found


def _type(text: str, at: int) -> tuple[SparkType, int]:
    nested = _NESTED.match(text, at)
    if nested:
        return _nested(nested[1].lower(), text, nested.end())
    atom = _ATOM.match(text, at)
    if not atom:
        raise ValueError(f"no type at {at}")
    name = " ".join(atom[1].lower().split())
    name = _SYNONYMS.get(name, name)
    sizes = tuple(int(size) for size in (atom[2], atom[3]) if size is not None)
    if name == "decimal":
        # Spark's defaults: DECIMAL is DECIMAL(10, 0), and DECIMAL(5) is DECIMAL(5, 0).
        sizes = (*(sizes or (10,)), 0)[:2]
    return SparkType(name, sizes), atom.end()


def _nested(kind: str, text: str, at: int) -> tuple[SparkType, int]:
    children: list[tuple[str, SparkType]] = []
    comma: re.Match[str] | None = None
    while comma or not _CLOSE.match(text, at):
        name = ""
        if kind == "struct":
            field = _FIELD.match(text, at)
            if not field:
                raise ValueError(f"no field at {at}")
            name = field[2] if field[1] is None else field[1].replace("``", "`")
            at = field.end()
        child, at = _type(text, at)
        children.append((name, child))
        comma = _COMMA.match(text, at)
        if not comma:
            break
        at = comma.end()
    close = _CLOSE.match(text, at)
    if not close or len(children) != _PARTS.get(kind, len(children)):
        raise ValueError(f"{kind} is not complete at {at}")
    return SparkType(kind, (), tuple(children)), close.end()
