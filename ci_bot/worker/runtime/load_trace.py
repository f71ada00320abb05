"""Reports to the bot, at once, the files of the checkout that this process opens, imports or runs.

The bootstrap loads this file, by its path, before anything else of the worker. It adds an audit
hook that cannot be removed, and a pipe that can only be written to. A file is reported before its
content is read, so before any code in it runs. Whatever that code does afterwards, it cannot take
its own name back. Forked processes inherit the hook and the pipe; started programs do not, so their
command is reported.

Standard library only, and nothing newer than Python 3.9: it runs under the worker's interpreter.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

# Records: one letter, a text, a zero byte. `bot/sandbox/worker_output.py` reads them.
HELLO, FILE, ENDING, PROGRAM = b"h", b"f", b"e", b"p"
_PROGRAMS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"})
# Modules that start another interpreter, without the hook and without an audit event.
_STARTERS = ("popen_spawn_posix.py", "popen_forkserver.py", "popen_loky_posix.py")
# Modules that make interpreters within this process. When one is made, Python 3.13 has no audit
# event that a hook in Python receives.
_INTERPRETERS = frozenset({"_interpreters", "_xxsubinterpreters"})
_own = threading.local()
_told: set[str] = set()
# The function that takes the roots of a trace that was started without.
_rootless: list[Callable[[Sequence[str]], None]] = []


@contextmanager
def exclude_from_load_trace() -> Iterator[None]:
    """Leaves out files that this thread reads inside the block: they are only inspected and never
    run.
    """
    before = getattr(_own, "looking", False)
    _own.looking = True
    try:
        yield
    finally:
        _own.looking = before


def list_files_in_load_trace() -> frozenset[str]:
    """Lists the absolute paths of the files that this process has reported."""
    return frozenset(_told)


def name_load_trace_roots(roots: Sequence[str]) -> None:
    """Names the roots of a trace that was started without; reports what was opened below them."""
    while _rootless:
        _rootless.pop()(roots)


def install_load_trace(descriptor: int, roots: Sequence[str] | None) -> None:
    """Starts the trace.

    Args:
        descriptor: The pipe to the bot.
        roots: Absolute directories; files outside of them are not reported. None: they are named
            later, before anything of them is loaded (`name_load_trace_roots`).
    """
    # A JVM that kept it open would keep the bot waiting.
    os.set_inheritable(descriptor, False)
    report_file = _make_load_trace_reporter(descriptor, roots)

    def report_program(arguments: tuple[Any, ...]) -> None:
        for word in _list_file_words_for_load_trace(arguments):
            report_file(word)
        _write_load_trace_record(
            descriptor, PROGRAM, os.path.basename(_read_program_name_for_load_trace(arguments))
        )

    def report_executed_code(arguments: tuple[Any, ...]) -> None:
        # Byte code may be run without its source being opened.
        source = _find_source_of_code_in_load_trace(arguments[0])
        report_file(source)
        if source is not None and source.endswith(_STARTERS):
            _write_load_trace_record(descriptor, PROGRAM, "multiprocessing")

    def report_import(arguments: tuple[Any, ...]) -> None:
        report_file(arguments[1])
        if arguments[0] in _INTERPRETERS:
            _write_load_trace_record(descriptor, PROGRAM, "interpreter")

    watched: dict[str, Callable[[tuple[Any, ...]], None]] = {
        "open": lambda arguments: report_file(arguments[0]),
        "exec": report_executed_code,
        "import": report_import,
        "ctypes.dlopen": lambda arguments: report_file(arguments[0]),
        "sqlite3.load_extension": lambda arguments: report_file(arguments[1]),
        "cpython.PyInterpreterState_New": lambda _: _write_load_trace_record(
            descriptor, PROGRAM, "interpreter"
        ),
        **dict.fromkeys(_PROGRAMS, report_program),
    }

    def watch_event(event: str, arguments: tuple[Any, ...]) -> None:
        # This runs for every audit event, and each `id()` is one, so it does as little as possible.
        if event in watched:
            watched[event](arguments)

    _write_load_trace_record(descriptor, HELLO, "")
    sys.addaudithook(watch_event)


def _find_source_of_code_in_load_trace(code: Any) -> str | None:
    """Finds the file of a code object; None for `<string>` and the like."""
    name = getattr(code, "co_filename", None)
    return None if name is None or name.startswith("<") else name


def _make_load_trace_reporter(
    descriptor: int, roots: Sequence[str] | None
) -> Callable[[Any], None]:
    """Makes the function that reports each file below `roots` once, by its name and by its link's
    target.
    """
    below: tuple[str, ...] | None = None
    waiting: list[tuple[tuple[str, ...], str | None]] = []
    known: set[str] = set()

    def write_records(names: tuple[str, ...], ending: str | None) -> None:
        if below is None:
            waiting.append((names, ending))
            return
        for found in names:
            if found.startswith(below):
                _write_load_trace_record(descriptor, FILE, found)
                _told.add(found)
        if ending is not None:
            _write_load_trace_record(descriptor, ENDING, ending)

    def name_roots(directories: Sequence[str]) -> None:
        nonlocal below
        below = tuple(f"{root.rstrip(os.sep)}{os.sep}" for root in directories)
        for names, ending in waiting:
            write_records(names, ending)
        waiting.clear()

    if roots is None:
        _rootless.append(name_roots)
    else:
        name_roots(roots)

    def report_file(name: Any) -> None:
        if name is None or isinstance(name, int) or getattr(_own, "looking", False):
            return  # an open descriptor was reported when it was opened
        try:
            text = os.fsdecode(name)
            path = os.path.join(os.getcwd(), text)
        except (OSError, TypeError, ValueError):
            return
        if path in known:
            return
        # Relative to a directory that was opened before; no event names it.
        unseen = path != text and not os.path.lexists(path)
        write_records(
            _list_path_names_for_load_trace(path), os.path.normpath(text) if unseen else None
        )
        # Only now: a failed report must be tried again.
        known.add(path)

    return report_file


def _list_path_names_for_load_trace(path: str) -> tuple[str, ...]:
    """Returns the path, and its link's target if that differs."""
    name = os.path.normpath(path)
    directory, last = os.path.split(path)
    try:
        end = os.path.join(_real_directory(directory), last)
        if os.path.islink(end):
            end = os.path.realpath(end)
    except (OSError, ValueError):
        return (name,)
    return (name,) if end == name else (name, end)


# Most files of a directory are no links, so each directory is resolved once.
_real_directory = lru_cache(maxsize=20_000)(os.path.realpath)


def _write_load_trace_record(descriptor: int, kind: bytes, text: str) -> None:
    """Writes one record in one piece; raises if the bot cannot receive it, so the file is not
    opened.
    """
    data = kind + os.fsencode(text).replace(b"\0", b"") + b"\0"
    if os.write(descriptor, data) != len(data):
        raise OSError("the bot got only a part of a file's name")


def _read_program_name_for_load_trace(arguments: tuple[Any, ...]) -> str:
    first = arguments[1] if isinstance(arguments[0], int) else arguments[0]
    if first is None:  # subprocess, whose command names its program itself
        first = next(iter(_list_file_words_for_load_trace(arguments)), "")
    text = os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else ""
    return (text.split() or [""])[0]


def _list_file_words_for_load_trace(arguments: tuple[Any, ...]) -> Iterator[str]:
    """Yields every word of a command that can be a file's name, also in `--option=name`."""
    for argument in arguments[:3]:
        parts = argument if isinstance(argument, (list, tuple)) else [argument]
        for part in parts:
            if not isinstance(part, (str, bytes, os.PathLike)):
                continue
            text = os.fsdecode(part)
            yield text
            for piece in text.replace("=", " ").replace(",", " ").replace(":", " ").split():
                if piece != text:
                    yield piece
