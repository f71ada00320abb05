"""A worker that imports before there is a request, and waits for it.

The other end is `bot/sandbox/early_worker.py`. Nothing of a project is read here: the process has
no directory of one yet.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ci_bot.worker.runtime.load_trace import name_load_trace_roots

_READ_BYTES = 65_536
# What keeps the current directory of its import: for processes that are spawned, and tracebacks.
_KEEP_DIRECTORY = (("multiprocessing.process", "ORIGINAL_DIR"), ("rich", "_IMPORT_CWD"))
_CONSTANTS = "sqlmesh.core.constants"


def import_until_request(line: int, first: Sequence[str], then: Sequence[str]) -> None:
    """Imports modules, then waits until the bot hands over what this process is to work on.

    What fails to import is imported again when it is needed, where the error has its sentence.
    Without a bot this process ends.

    Args:
        line: The pipe on which the bot says it.
        first: Modules that are needed in any case.
        then: Modules that are probably needed, one after the other as long as the bot is silent.
    """
    os.set_inheritable(line, False)
    for name in first:
        _import_or_wait_for_need(name)
    import_until_readable(line, then)
    handed = b""
    while chunk := os.read(line, _READ_BYTES):
        handed += chunk
    os.close(line)
    if not handed:
        os._exit(1)
    _take_over(json.loads(handed))


def import_until_readable(descriptor: int, names: Sequence[str]) -> None:
    """Imports one module after the other until a read of the descriptor would return at once."""
    for name in names:
        if select.select([descriptor], [], [], 0)[0]:
            return
        _import_or_wait_for_need(name)


def _import_or_wait_for_need(name: str) -> None:
    with suppress(Exception):
        importlib.import_module(name)


def reread_sqlmesh_constants() -> None:
    """Sets SQLMesh's number of forks once more, which the size of a project decides."""
    if module := sys.modules.get(_CONSTANTS):
        importlib.reload(module)


def _take_over(handed: Mapping[str, Any]) -> None:
    os.chdir(handed["directory"])
    for name, value in handed["variables"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None  # it keeps what TMPDIR was
    for module, name in _KEEP_DIRECTORY:
        if module in sys.modules:
            setattr(sys.modules[module], name, handed["directory"])
    name_load_trace_roots(handed["roots"])
