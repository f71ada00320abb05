"""Keeps this process's secrets from other processes of the same user.

The kernel shows a process's environment to everybody with its uid, at /proc/PID/environ. It shows
the memory in which the environment was when the process started, so a variable that is removed
later is still there. The whole memory can be read at /proc/PID/mem. So this module overwrites the
values in that memory, and then closes the process to other processes of its uid.

root with CAP_SYS_PTRACE may read everything. And we cannot change what the process that started
this one holds: a shell that was given the token still has it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, MutableMapping

from ci_bot.errors import BotError

PR_SET_DUMPABLE = 4
# A shorter value is no credential, and other values contain it by accident.
_SHORTEST = 8


def keep_secrets_of_action(environ: MutableMapping[str, str], names: Iterable[str]) -> None:
    """Removes credentials from this process's environment, and closes its memory.

    A program that is started later does not get the credentials, and its own memory is readable
    again.

    Args:
        environ: `os.environ`.
        names: The variables with the credentials. Others that contain one of these values, such as
            a header with the token, are removed as well.

    Raises:
        BotError: the kernel refuses.
    """
    named = set(names)
    values = [environ[name] for name in named if len(environ.get(name, "")) >= _SHORTEST]
    held = [
        name
        for name, value in environ.items()
        if name in named or any(secret in value for secret in values)
    ]
    if sys.platform == "linux":
        _overwrite_variables({os.fsencode(name) for name in held})
        _close_to_other_processes()
    for name in held:
        del environ[name]


def _overwrite_variables(names: set[bytes]) -> None:
    """Writes zeros over these variables' values, in the memory that the kernel shows."""
    # The C library's own list; its entries from the start are still where the kernel put them.
    entries = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    position = 0
    while entries and (address := entries[position]):
        name, _, value = ctypes.string_at(address).partition(b"=")
        if name in names:
            ctypes.memset(address + len(name) + 1, 0, len(value))
        position += 1


def _close_to_other_processes() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise BotError(
            "The kernel does not let this process close its memory to others of the same user, so "
            "the project's code could read the token.",
            hint="Run the action on a runner that allows prctl, as GitHub's do.",
            reason_code="memory_stays_open",
        )
