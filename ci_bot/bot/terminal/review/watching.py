"""`ci-bot review --watch`: looks for changed files once a second, and reviews again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ci_bot.bot.cage.watch.signals import CancelToken, handle_signals
from ci_bot.bot.terminal.telling import told
from ci_bot.errors import BotError, Cancelled
from ci_bot.machine import Machine

SECONDS = 1.0
# What a load of a project reads. Its state, its logs and Spark's warehouse may lie beside it, and
# change while it is looked at.
_READ = (".sql", ".py", ".yaml", ".yml", ".csv", ".jinja", ".j2", ".toml", ".json", ".env")
_ENVIRONMENT = "pyvenv.cfg"
_BYTE_CODE = "__pycache__"

Signature = dict[str, tuple[int, int]]


def watch(machine: Machine, places: Iterable[Path], review: Callable[[], object]) -> int:
    """Reviews now, and again after each change below `places`, until somebody ends it.

    What is wrong in one round may be mended in the next, so it ends none but the first.

    Returns:
        The exit code of the signal that has ended it.

    Raises:
        BadInput: the first review could not be made.
        Cancelled: it was ended in the middle of a review.
    """
    directories = list(places)
    cancel = CancelToken(clock=machine.monotonic)
    try:
        with handle_signals(cancel):
            seen = signature(directories)
            review()
            while True:
                try:  # also while it is said: who reads it may end it at once
                    _say(machine, f"watching {len(seen):,} files; Ctrl-C ends it")
                    seen = _changed(machine, directories, seen)
                except Cancelled as error:
                    _say(machine, "ended")
                    return error.exit_code
                _again(machine, review)
    finally:
        cancel.close()


def _again(machine: Machine, review: Callable[[], object]) -> None:
    print(f"\n── {machine.utc_now().astimezone():%H:%M:%S} ──", file=machine.out, flush=True)
    try:
        review()
    except BotError as error:
        print(told(error, machine.environ), file=machine.log, flush=True)


def _changed(machine: Machine, directories: list[Path], seen: Signature) -> Signature:
    """Waits for a change, and until it is over: an editor or git writes more than one file."""
    before = seen
    while True:
        machine.sleep(SECONDS)
        now = signature(directories)
        if now == before != seen:
            return now
        before = now


def signature(directories: Iterable[Path]) -> Signature:
    """Size and time of each file that a load would read, by path."""
    found: Signature = {}
    for directory in directories:
        for path in _files(directory):
            try:
                status = os.stat(path)  # noqa: PTH116 - a text, thousands of them each second
            except OSError:
                continue  # it went while we were looking
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _files(directory: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        if _ENVIRONMENT in files:
            folders.clear()
            continue
        folders[:] = [one for one in folders if not one.startswith(".") and one != _BYTE_CODE]
        yield from (os.path.join(folder, one) for one in files if one.endswith(_READ))  # noqa: PTH118 - a text, too


def _say(machine: Machine, text: str) -> None:
    print(f"watch: {text}", file=machine.log, flush=True)
