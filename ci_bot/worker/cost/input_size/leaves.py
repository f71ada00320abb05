"""How much Spark will read for a query, from the leaves of its optimized plan. Nothing is run.

The number at the plan's root is of no use, because a join multiplies the sizes of its sides there.
A leaf's size is that of the files that are left after partitions were pruned, or of the tasks that
Iceberg has planned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

# Spark's answer where it has no statistics is Long.MaxValue (spark.sql.defaultSizeInBytes).
UNKNOWN_SIZE = 2**60
# Formats of which only the columns that a query needs are read. Iceberg's scan says so itself.
_COLUMNAR = ("parquet", "orc")
_ID = re.compile(r"#(\d+)")
_SEPARATOR = "\u0001"
# DataType.defaultSize, by which Spark itself weighs columns against each other.
_WIDTHS = {
    **{"boolean": 1, "byte": 1, "short": 2, "integer": 4, "long": 8, "float": 4, "double": 8},
    **{"date": 4, "timestamp": 8, "timestamp_ntz": 8, "string": 20, "binary": 100},
}
_OTHER_WIDTH = 16


def bytes_read(session: Any, sql: str) -> int | None:
    """Bytes that a query will read; None where Spark cannot say of one of its tables.

    Args:
        session: A classic `SparkSession`.
        sql: A query; it is analysed and optimized, which looks at files and manifests.

    Raises:
        PySparkException, Py4JError: Spark cannot analyse it.
    """
    plan = session.sql(sql)._jdf.queryExecution().optimizedPlan()
    plans = [plan, *_items(plan.subqueriesAll())]
    leaves: list[Any] = []
    needed: set[str] = set()
    for each in plans:
        needed |= _ids(each.output())
        for node in _nodes(each):
            if node.children().isEmpty():
                leaves.append(node)
            else:
                needed |= _ids(node.references())
    total = 0
    for leaf in leaves:
        size = _size(session, leaf)
        if size >= UNKNOWN_SIZE:
            return None
        total += round(size * _share(leaf, needed))
    return total


def _size(session: Any, leaf: Any) -> int:
    """Bytes of a leaf's files. A partitioned table of which all is read was not listed yet: Spark
    does that when a filter prunes it, or when it runs."""
    size = int(str(leaf.stats().sizeInBytes()))
    if size < UNKNOWN_SIZE or leaf.nodeName() != "LogicalRelation":
        return size
    location = leaf.relation().location()
    if not str(location.getClass().getName()).endswith(".CatalogFileIndex"):
        return size
    no_filter = getattr(getattr(session._jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    return int(location.filterPartitions(no_filter).sizeInBytes())


def _share(leaf: Any, needed: set[str]) -> float:
    """The share of a leaf's bytes that are in the columns which somebody above it needs."""
    if leaf.nodeName() != "LogicalRelation" or not _is_columnar(leaf):
        return 1.0
    fields = json.loads(leaf.schema().json())["fields"]
    columns = str(leaf.output().mkString(_SEPARATOR)).split(_SEPARATOR)
    widths = [_width(field["type"]) for field in fields]
    if len(columns) != len(widths):
        return 1.0
    used = [width for text, width in zip(columns, widths, strict=True) if _id(text) in needed]
    return sum(used) / sum(widths) if widths else 1.0


def _is_columnar(leaf: Any) -> bool:
    return str(leaf.relation().toString()).lower() in _COLUMNAR


def _width(kind: Any) -> int:
    return _WIDTHS.get(kind, _OTHER_WIDTH) if isinstance(kind, str) else _nested(kind)


def _nested(kind: dict[str, Any]) -> int:
    if kind["type"] == "struct":
        return sum(_width(field["type"]) for field in kind["fields"])
    if kind["type"] == "array":
        return _width(kind["elementType"])
    if kind["type"] == "map":
        return _width(kind["keyType"]) + _width(kind["valueType"])
    return _OTHER_WIDTH


def _ids(attributes: Any) -> set[str]:
    """The numbers by which Spark tells columns apart; a column's name may add one that is none."""
    return set(_ID.findall(str(attributes.mkString(_SEPARATOR))))


def _id(attribute: str) -> str:
    found = _ID.findall(attribute)
    return str(found[-1]) if found else ""


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in _items(plan.children()):
        yield from _nodes(child)


def _items(sequence: Any) -> Iterator[Any]:
    for number in range(sequence.size()):
        yield sequence.apply(number)
