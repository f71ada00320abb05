"""What is imported before a worker has started, and before it knows what it is asked for.

A worker's early import of SQLMesh undoes three things at once: a JVM that starts while SQLMesh is
imported, work of that import which is delayed, and the refusal of a version that is not supported.
And whatever the bot imports before it starts a worker makes every run longer.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("sqlmesh", "sqlglot", "pyspark", "pandas")
# What draws a report, reads a template, or asks GitHub.
LATE = ("jinja2", "github", "requests", "rich")
ASKED = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*sorted(sys.modules))"


@pytest.mark.parametrize("module", ["ci_bot.worker.__main__", "ci_bot.worker.runtime.java_process"])
def test_start__imports_neither_sqlmesh_nor_spark(module: str) -> None:
    assert list_imported(module, HEAVY) == []


@pytest.mark.parametrize("activity", ["review", "apply", "cleanup"])
def test_start__bot_imports_no_report_before_it_asks_a_worker(activity: str) -> None:
    assert list_imported(f"ci_bot.bot.worker_client.{activity}", LATE) == []


def test_early_worker__is_started_before_anything_is_imported() -> None:
    late = ("click", "pydantic", "ruamel", "ci_bot.protocol.base", "ci_bot.redaction.redactor")
    assert list_imported("ci_bot.bot.sandbox.early_worker", late) == []


def list_imported(module: str, watched: tuple[str, ...]) -> list[str]:
    """Lists which of the watched modules the import of a module imports."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED, module], capture_output=True, text=True, check=True
    )
    imported = done.stdout.split()
    assert module in imported
    return [name for name in watched if name in imported]
