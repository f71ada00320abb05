"""What a worker imports before it knows what it is asked for.

An early import of SQLMesh undoes three things at once: a JVM that starts while SQLMesh is imported,
work of that import which is delayed, and the refusal of a version that is not supported.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("sqlmesh", "sqlglot", "pyspark", "pandas")
ASKED = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*sorted(sys.modules))"


@pytest.mark.parametrize("module", ["ci_bot.worker.__main__", "ci_bot.worker.runtime.java_process"])
def test_start__imports_neither_sqlmesh_nor_spark(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASKED, module], capture_output=True, text=True, check=True
    )
    imported = done.stdout.split()
    assert module in imported
    assert [name for name in HEAVY if name in imported] == []
