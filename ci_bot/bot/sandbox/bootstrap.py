"""The first lines that run in a caged process, before any code of the project can.

The bot starts `python -I -X utf8 .../bootstrap.py CONFIG TRACE ARGUMENT...`. CONFIG is a JSON
object. TRACE is the number of a descriptor; opened files are written to it if CONFIG asks for that.
This file runs alone under the worker's interpreter, which may be another one than the bot's and may
not know `ci_bot`. So it uses only the standard library, and nothing newer than Python 3.9.

It does not run in `preexec_fn`: that is code between fork and exec of a process with threads, which
may hang. The uid is already dropped here; the rest can only be done by a process itself.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38


def lock_down_sandboxed_process(config: dict[str, object]) -> None:
    """Gives up what the worker must not have; raises OSError if the kernel refuses."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    processes = config.get("processes")
    if isinstance(processes, int):
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        limit = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
    bounds = config.get("bounds")
    if isinstance(bounds, dict):
        for name, value in bounds.items():
            hard = resource.getrlimit(getattr(resource, name))[1]
            limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(getattr(resource, name), (limit, hard))
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses no_new_privs")
    # If the bot dies without warning, the worker dies too; and the bot may have died already.
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != config["parent"]:
        os._exit(1)
    # If memory runs out, the kernel should kill the worker and not the bot.
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 - runs before pathlib may load
            file.write("1000")
    except OSError:
        pass


def set_path_of_sandboxed_process(config: dict[str, object]) -> None:
    """Puts the project's own pins first in `sys.path`, and the bot's package last."""
    overlay, search_path = config.get("overlay"), config.get("search_path")
    if isinstance(overlay, str):
        sys.path.insert(0, overlay)
    if isinstance(search_path, list):
        sys.path += [path for path in search_path if path not in sys.path]


def start_trace_in_sandbox(config: dict[str, object], descriptor: str) -> None:
    """Reports to the bot from now on which files are opened, if CONFIG asks for it."""
    trace = config.get("trace")
    if not isinstance(trace, dict):
        return
    # It is loaded by its path, before any package can be imported under that name.
    spec = importlib.util.spec_from_file_location(trace["module"], trace["file"])
    if spec is None or spec.loader is None:
        raise ImportError(trace["file"])
    module = importlib.util.module_from_spec(spec)
    sys.modules[trace["module"]] = module
    spec.loader.exec_module(module)
    module.install_load_trace(int(descriptor), trace["roots"])


def main(arguments: list[str]) -> None:
    """Locks this process down and runs the module or the script that CONFIG names."""
    config = json.loads(arguments[0])
    lock_down_sandboxed_process(config)
    start_trace_in_sandbox(config, arguments[1])
    set_path_of_sandboxed_process(config)
    if config.get("module"):
        sys.argv = [config["module"], *arguments[2:]]
        runpy.run_module(config["module"], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments[2:]
        runpy.run_path(arguments[2], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
