"""Tells the bot, at once, which files of the checkout this process opens, imports or runs.

The bootstrap loads this file, by its path, before anything else of the worker: an audit hook that
cannot be taken out again, and a pipe that can only be written to. A file is reported before its
content is read, so before any code in it runs. What that code does afterwards, it cannot take its
own name back. Processes that are forked inherit the hook and the pipe; programs that are started do
not, so their command is reported.

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

# Records: one letter, a text, a zero byte. `bot/sandbox/load_trace.py` reads them.
HELLO, FILE, ENDING, PROGRAM = b"h", b"f", b"e", b"p"
_PROGRAMS = frozenset({"subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system"})
# What starts an interpreter of its own, without the hook and without an event that says so.
_STARTERS = ("popen_spawn_posix.py", "popen_forkserver.py", "popen_loky_posix.py")
# Modules that make interpreters within this process. Python 3.13 has no event of the making itself
# that a hook in Python hears.
_INTERPRETERS = frozenset({"_interpreters", "_xxsubinterpreters"})
_own = threading.local()
_told: set[str] = set()


@contextmanager
def not_loading() -> Iterator[None]:
    """While inside, this thread reads files to look at them, and nothing in them can run."""
    before = getattr(_own, "looking", False)
    _own.looking = True
    try:
        yield
    finally:
        _own.looking = before


def list_opened_files() -> frozenset[str]:
    """The files that this process has told of, absolute."""
    return frozenset(_told)


def install_trace(descriptor: int, roots: Sequence[str]) -> None:
    """Starts to tell.

    Args:
        descriptor: The pipe to the bot.
        roots: Absolute directories; files outside of them are not told.
    """
    # A JVM that kept it open would keep the bot waiting.
    os.set_inheritable(descriptor, False)
    tell = _make_reporter(descriptor, roots)

    def started(arguments: tuple[Any, ...]) -> None:
        for word in _list_file_words(arguments):
            tell(word)
        _write_record(descriptor, PROGRAM, os.path.basename(_program_name(arguments)))

    def executed(arguments: tuple[Any, ...]) -> None:
        # Byte code may be run without its source being opened.
        source = _source_of_code(arguments[0])
        tell(source)
        if source is not None and source.endswith(_STARTERS):
            _write_record(descriptor, PROGRAM, "multiprocessing")

    def imported(arguments: tuple[Any, ...]) -> None:
        tell(arguments[1])
        if arguments[0] in _INTERPRETERS:
            _write_record(descriptor, PROGRAM, "interpreter")

    watched: dict[str, Callable[[tuple[Any, ...]], None]] = {
        "open": lambda arguments: tell(arguments[0]),
        "exec": executed,
        "import": imported,
        "ctypes.dlopen": lambda arguments: tell(arguments[0]),
        "sqlite3.load_extension": lambda arguments: tell(arguments[1]),
        "cpython.PyInterpreterState_New": lambda _: _write_record(
            descriptor, PROGRAM, "interpreter"
        ),
        **dict.fromkeys(_PROGRAMS, started),
    }

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Called for every audited event of the process, and each `id()` is one: no more than this.
        if event in watched:
            watched[event](arguments)

    _write_record(descriptor, HELLO, "")
    sys.addaudithook(hook)


def _source_of_code(code: Any) -> str | None:
    """The file that a code object was made from; `<string>` and its like are none."""
    name = getattr(code, "co_filename", None)
    return None if name is None or name.startswith("<") else name


def _make_reporter(descriptor: int, roots: Sequence[str]) -> Callable[[Any], None]:
    """Tells each file below `roots` once, under its name and under the one that links lead to."""
    below = tuple(f"{root.rstrip(os.sep)}{os.sep}" for root in roots)
    known: set[str] = set()

    def tell(name: Any) -> None:
        if name is None or isinstance(name, int) or getattr(_own, "looking", False):
            return  # an open descriptor was told when it was opened
        try:
            text = os.fsdecode(name)
            path = os.path.join(os.getcwd(), text)
        except (OSError, TypeError, ValueError):
            return
        if path in known:
            return
        for found in _names_of_path(path):
            if found.startswith(below):
                _write_record(descriptor, FILE, found)
                _told.add(found)
        if path != text and not os.path.lexists(path):
            # Relative to a directory that was opened before; which one, no event says.
            _write_record(descriptor, ENDING, os.path.normpath(text))
        # Not sooner: what could not be told may be tried again.
        known.add(path)

    return tell


def _names_of_path(path: str) -> tuple[str, ...]:
    """The path, and where links lead it."""
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


def _write_record(descriptor: int, kind: bytes, text: str) -> None:
    """One record, in one piece; if nobody can hear of it, nothing is opened either."""
    data = kind + os.fsencode(text).replace(b"\0", b"") + b"\0"
    if os.write(descriptor, data) != len(data):
        raise OSError("the bot got only a part of a file's name")


def _program_name(arguments: tuple[Any, ...]) -> str:
    first = arguments[1] if isinstance(arguments[0], int) else arguments[0]
    if first is None:  # subprocess, whose command names its program itself
        first = next(iter(_list_file_words(arguments)), "")
    text = os.fsdecode(first) if isinstance(first, (str, bytes, os.PathLike)) else ""
    return (text.split() or [""])[0]


def _list_file_words(arguments: tuple[Any, ...]) -> Iterator[str]:
    """Everything in a command that can be the name of a file, `--option=name` among it."""
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
