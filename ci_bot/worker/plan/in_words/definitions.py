"""What a model's definition was and is, as text to compare."""

from __future__ import annotations

import difflib

from sqlmesh.core.snapshot import Snapshot

from ci_bot.contracts.documents.plan import ChangeType
from ci_bot.worker.plan.planning import Planned

# The renderer cuts by importance; this keeps one absurd diff from filling the whole answer.
MAX_DIFF_CHARS = 100_000


def diff_of(planned: Planned, snapshot: Snapshot, kind: ChangeType) -> str | None:
    """How a model's definition differs from prod's, as a unified diff; None where it does not."""
    if kind == "indirect":
        return None
    if kind == "added":
        lines = (_source(snapshot) or _definition(snapshot)).splitlines()
        added = "\n".join(difflib.unified_diff([], lines, n=0, lineterm=""))
        return _bounded(_without_headers(added)) or None
    text = _without_headers(planned.plan.context_diff.text_diff(snapshot.name))
    return _bounded(text) if text.strip() else None


def _without_headers(diff: str) -> str:
    """A unified diff without its nameless file headers and the blank lines after its headers.

    SQLMesh joins lines of which the headers have a line end of their own.
    """
    kept: list[str] = []
    after_header = True
    for line in diff.splitlines():
        if line.rstrip() in ("---", "+++"):
            continue
        if after_header and not line.strip():
            continue
        after_header = line.startswith("@@")
        kept.append(line)
    return "\n".join(kept)


def _source(snapshot: Snapshot) -> str | None:
    """The file of a model that is its file's only one: what its author wrote, at no cost.

    Printing a model anew takes a hundredth of a second, and a first review has thousands.
    """
    path = snapshot.node._path
    if path is None or path.suffix not in (".sql", ".py"):
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    # From a blueprint, or from a file that holds several, more than this one would be shown.
    alone = "@" not in str(snapshot.node.name) and "blueprints" not in text
    return text if alone and text.upper().count("MODEL (") <= 1 else None


def _definition(snapshot: Snapshot) -> str:
    node = snapshot.node
    try:
        expressions = node.render_definition(include_python=True)
    except Exception:
        # A node that cannot be printed is still an added node; the file link shows it.
        return ""
    return ";\n\n".join(
        expression.sql(pretty=True, dialect=node.dialect) for expression in expressions
    )


def _bounded(text: str) -> str:
    if len(text) <= MAX_DIFF_CHARS:
        return text
    kept = text[:MAX_DIFF_CHARS].rsplit("\n", 1)[0]
    return f"{kept}\n[{len(text) - len(kept)} characters left out]"
