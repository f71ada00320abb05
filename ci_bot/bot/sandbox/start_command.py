"""The command line and the fixed variables of a caged process.

Only the standard library: an early worker starts before the bot imports anything else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

CONTAINER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# They belong to the runner, the action's inputs, and the bot.
NEVER_PREFIXES = ("GITHUB_", "ACTIONS_", "RUNNER_", "INPUT_", "CI_BOT_")
# They are read when a program starts, before any of our code: they would change the cage itself.
NEVER_NAMES = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV"})
# The name under which the bootstrap loads the file, and so the worker finds it.
TRACE_MODULE = "ci_bot.worker.runtime.load_trace"

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_TRACE_FILE = Path(__file__).parents[2] / "worker" / "runtime" / "load_trace.py"


def is_never_passed_on(name: str) -> bool:
    """Whether a variable of this name never enters the cage."""
    return name.startswith(NEVER_PREFIXES) or name in NEVER_NAMES


def fix_worker_variables(path: str | None) -> dict[str, str]:
    """Makes the variables that every worker gets from us, but for its directories.

    Args:
        path: The executables; None: those of the container.
    """
    return {
        "PATH": path or CONTAINER_PATH,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "400",
        "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
    }


def make_trace_arguments(roots: Sequence[Path] | None) -> dict[str, str | list[str] | None]:
    """Makes what the bootstrap gets about the trace; `roots` None: they are named later."""
    named = None if roots is None else [str(root) for root in roots]
    return {"module": TRACE_MODULE, "file": str(_TRACE_FILE), "roots": named}


def make_bootstrap_command(
    python: str,
    *,
    processes: int | None,
    search_path: Sequence[str],
    module: str | None,
    overlay: str | None = None,
    bounds: Mapping[str, int] | None = None,
    trace: Mapping[str, object] | None = None,
) -> list[str]:
    """Makes the command of a caged process, up to the number of its trace's descriptor.

    Args:
        processes: The limit of the user's processes and threads.
        module: What is run; None: a script, which is the first argument.
        bounds: Limits by the names that the module `resource` has.
    """
    config = {
        "parent": os.getpid(),
        "processes": processes,
        "overlay": overlay,
        "search_path": list(search_path),
        "module": module,
        "bounds": dict(bounds or {}),
        "trace": trace,
    }
    # -X utf8: with -I, Python ignores PYTHONUTF8.
    return [python, "-I", "-X", "utf8", str(_BOOTSTRAP), json.dumps(config)]
