"""SQL statements around models and environments: what they destroy, write or open up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlmesh.core import dialect as d

from ci_bot.contracts.plan import Severity

_DESTROYS = (exp.Drop, exp.TruncateTable, exp.Delete)
_HARMLESS = re.compile(
    r"^\s*(SET|CACHE|UNCACHE|ANALYZE|REFRESH|USE|COMMENT|SELECT|SHOW|DESCRIBE|WITH|CLEAR|RESET|"
    r"MSCK|@DEF)\b",
    re.IGNORECASE,
)
_VERBS: tuple[tuple[str, Severity, str], ...] = (
    (r"^\s*DROP\b", "blocker", "drops"),
    (r"^\s*TRUNCATE\b", "blocker", "empties"),
    (r"^\s*DELETE\b", "blocker", "deletes rows of"),
    (r"^\s*VACUUM\b", "high", "removes old files of"),
    (r"^\s*(UPDATE|MERGE|INSERT)\b", "blocker", "writes rows into"),
    (r"^\s*ALTER\b", "high", "alters"),
    (r"^\s*(GRANT|REVOKE)\b", "high", "changes rights on"),
    (r"^\s*CREATE\s+OR\s+REPLACE\b(?!\s+TEMP)", "high", "replaces"),
    (r"\bexpire_snapshots|remove_orphan_files|rollback_to", "high", "removes history of"),
)


@dataclass(frozen=True)
class Danger:
    """What a statement does, in words, and how bad that is."""

    what: str
    severity: Severity
    anchors: tuple[str, ...]


def model_statements(model: Any) -> Iterator[tuple[str, str]]:
    """(when, text) of the statements around a model's query."""
    for when, attribute in (
        ("pre", "pre_statements_"),
        ("post", "post_statements_"),
        ("on-virtual-update", "on_virtual_update_"),
    ):
        for item in getattr(model, attribute, None) or []:
            yield when, item.sql


def judged(text: str, dialect: str) -> Danger | None:
    """What is dangerous about one statement; None where nothing is.

    Statements with macros are judged by their first word, because only running the macro would say
    more.
    """
    if _HARMLESS.match(text):
        return None
    tree = _parsed(text, dialect)
    for pattern, severity, what in _VERBS:
        if re.search(pattern, text, re.IGNORECASE):
            target = _target(tree)
            scope = _scope_of(tree, text)
            if scope == "temporary":
                return None
            named = f" `{target}`" if target else " something"
            return Danger(f"{what}{named}{scope}", severity, _anchors(text))
    nested = tree.find(*_DESTROYS) if tree is not None else None
    if nested is not None:
        return Danger(
            f"destroys data inside `{text.split(maxsplit=1)[0]}`", "blocker", _anchors(text)
        )
    return None


def _parsed(text: str, dialect: str) -> Any:
    try:
        found = d.parse(text, default_dialect=dialect or None)
    except (SqlglotError, ValueError, AttributeError):
        return None
    return found[0] if found else None


def _target(tree: Any) -> str | None:
    if tree is None:
        return None
    table = tree.find(exp.Table)
    if table is None:
        return None
    name = ".".join(part.name for part in table.parts if part.name)
    return name or None


def _scope_of(tree: Any, text: str) -> str:
    if re.search(r"\bTEMP(ORARY)?\b", text, re.IGNORECASE):
        return "temporary"
    if re.search(r"\bCASCADE\b", text, re.IGNORECASE):
        return " with everything in it"
    if isinstance(tree, exp.Delete) and tree.args.get("where") is None:
        return " (all of its rows)"
    return ""


def _anchors(text: str) -> tuple[str, ...]:
    words = text.split()
    return (" ".join(words[:3]), " ".join(words[:2])) if words else ()
