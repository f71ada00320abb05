"""Names of objects in a tree, in one form: lower case, no quotes, catalog first."""

from __future__ import annotations

from typing import Any

from ci_bot.worker.statements.effects import ObjectName

# A macro that stands for the model's own table, wherever it runs.
THIS_MODEL: ObjectName = ("@this_model",)


def of_table(node: Any) -> ObjectName | None:
    """The name in a table's node; None where a part is computed when the statement runs."""
    key = node.key if node is not None else ""
    if key in ("schema", "userdefinedfunction"):  # with a list of columns or arguments
        return of_table(node.this)
    if key in ("table", "column"):
        parts = node.parts
    elif key in ("identifier", "macrovar"):
        parts = [node]
    else:
        return None
    alone = parts[0] if len(parts) == 1 else None
    if alone is not None and alone.key == "macrovar" and alone.name.lower() == "this_model":
        return THIS_MODEL
    return _parts(parts)


def _parts(parts: list[Any]) -> ObjectName | None:
    found = []
    for part in parts:
        if part.key != "identifier" or "@" in part.this:
            return None
        found.append(part.this.lower())
    return tuple(found) or None
