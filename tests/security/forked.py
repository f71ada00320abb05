"""Run a function in a process of its own that has all modules loaded already.

A worker's process ends after one request, and with it its open files, its loaded project modules
and its variables. Here that costs some milliseconds instead of an interpreter's start.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlmesh.core.constants

Result = TypeVar("Result")


def forked(work: Callable[[], Result], scratch: Path) -> Result:
    """The result of `work`, which must survive pickling; its failure as an AssertionError."""
    answer = scratch / "answer.pickle"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        # SQLMesh renders models in processes of its own, which costs more than it brings here.
        sqlmesh.core.constants.MAX_FORK_WORKERS = 1
        try:
            content: tuple[bool, object] = (True, work())
        except BaseException:
            content = (False, traceback.format_exc())
        answer.write_bytes(pickle.dumps(content))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child ended with status {status}"
    done, result = pickle.loads(answer.read_bytes())  # noqa: S301 - our own child wrote it
    if not done:
        raise AssertionError(result)
    found: Result = result
    return found
