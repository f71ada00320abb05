"""Programs inside SQL: functions that call Java, and queries that start a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_bot.worker.statements.effects import Effect

# Spark's built-in functions that call any static method of the JVM.
RUNS_JAVA = frozenset({"java_method", "reflect", "try_reflect"})


def code_in(tree: Any) -> Iterator[Effect]:
    """What in a tree runs a program when the engine evaluates it."""
    for node in tree.walk():
        if node.key == "querytransform":
            yield Effect("code", "TRANSFORM", detail=node.sql())
        elif node.key == "anonymous" and node.name.lower() in RUNS_JAVA:
            yield Effect("code", node.name.lower(), detail=node.sql())
