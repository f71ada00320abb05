"""What a physical plan in an event log says: which table it writes, which it reads, which range.

The names of nodes and the texts of predicates are Spark's own, and the same in the versions that
are read. A physical table of SQLMesh is known by its name: `<schema>.<model>__<version>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

_WRITES = (
    "InsertInto",  # InsertIntoHadoopFsRelationCommand, InsertIntoHiveTable, InsertIntoDataSource
    "AsSelect",  # CreateDataSourceTableAsSelectCommand, ReplaceTableAsSelect and the others
    "SaveIntoDataSource",
    "AppendData",
    "OverwriteBy",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "WriteDelta",
    "WriteToDataSourceV2",
    "MergeInto",
    "MergeRows",
    "DeleteFromTable",
)
# A version of SQLMesh's is a checksum in decimal digits. A path has `.db/` between the two.
_TABLE = re.compile(r"([\w$-]+)(?:\.db/|\.)([\w$-]+__\d{3,10}(?:__dev)?)(?![\w$-])")
_MOMENT = r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?"
_LOWER = re.compile(rf"(>=|>) (?:cast\()?'?({_MOMENT})")
_UPPER = re.compile(rf"(<=|<) (?:cast\()?'?({_MOMENT})")

Range = tuple[datetime, datetime]


def written_table(plan: Mapping[str, Any]) -> str | None:
    """The physical table that a plan writes, as `schema.table`; None where it writes none.

    Args:
        plan: `sparkPlanInfo` of the event that a statement has begun.
    """
    for node in _nodes(plan):
        if any(sign in str(node.get("nodeName", "")) for sign in _WRITES):
            found = _first_table(str(node.get("simpleString", "")))
            if found is not None:
                return found
    return None


def read_tables(plan: Mapping[str, Any]) -> set[str]:
    """The physical tables that a plan scans, as `schema.table`."""
    return {
        found
        for node in _nodes(plan)
        if "Scan" in str(node.get("nodeName", ""))
        and (found := _first_table(f"{node.get('nodeName')} {node.get('simpleString')}"))
    }


def written_range(text: str) -> Range | None:
    """The range of time that a statement is about; the end is exclusive. None where it says none.

    SQLMesh puts the bounds of a batch around the query of a model that is incremental by time, and
    Spark pushes them down. A query may read more than that for itself, never less, so of all ranges
    in the plan the narrowest is the batch's.

    Args:
        text: `physicalPlanDescription`.
    """
    found = [span for line in text.splitlines() if (span := _range(line)) is not None]
    return min(found, key=lambda span: span[1] - span[0], default=None)


def _range(line: str) -> Range | None:
    if line.lstrip().startswith("PushedFilters"):
        return None  # cut at a hundred characters, and the conditions say the same
    lower = [_lower(*match) for match in _LOWER.findall(line)]
    upper = [_upper(*match) for match in _UPPER.findall(line)]
    if not lower or not upper or max(lower) >= min(upper):
        return None
    return max(lower), min(upper)


def _lower(operator: str, text: str) -> datetime:
    moment, step = _moment(text)
    return moment if operator == ">=" else moment + step


def _upper(operator: str, text: str) -> datetime:
    moment, step = _moment(text)
    return moment + step if operator == "<=" else moment


def _moment(text: str) -> tuple[datetime, timedelta]:
    """A moment, and the smallest step of how it is written."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=timezone.utc)
    except ValueError:
        # Some other text that looks like a date; before every range that is one.
        return datetime(1, 1, 2, tzinfo=timezone.utc), timedelta(0)
    return moment, timedelta(days=1) if len(text) == len("2024-01-31") else timedelta(
        microseconds=1
    )


def _first_table(text: str) -> str | None:
    match = _TABLE.search(text.replace("`", ""))
    return f"{match[1]}.{match[2]}".lower() if match else None


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in node.get("children") or () if isinstance(child, Mapping))
