"""What a caged process has opened, imported or run of the checkout, as it says itself, at once.

The other end is `worker/runtime/load_trace.py`. Code that runs later can add names, but it cannot
take back what was reported before it ran; so the first changed file of a pull request is always on
the list.
What cannot be understood, and what is too much, makes the list one that is not known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import source_from_cache
from pathlib import Path, PurePosixPath

from ci_bot.bot.sandbox.launch import WorkerLaunch

MODULE = "ci_bot.worker.runtime.load_trace"
_FILE = Path(__file__).parents[2] / "worker" / "runtime" / "load_trace.py"
_MOST_RECORDS = 500_000
_MOST_BYTES = 64 * 1024 * 1024
_LONGEST = 16_384
_MOST_LINKS = 40  # as the kernel
# Programs that run no file of the checkout: they ask the machine, or git. What any other program
# reads is not seen.
_HARMLESS = frozenset(
    {"file", "git", "uname", "hostname", "id", "whoami", "which", "arch", "getconf", "lscpu"}
    # What Python's `ctypes.util.find_library` asks.
    | {"ldconfig", "gcc", "cc", "ld", "objdump"}
    # How Spark is started; what Java reads by itself is known by its ending (`JAVA_READS`).
    | {"java", "spark-submit"}
)
JAVA_READS = (".jar", ".conf", ".xml", ".properties")


class TraceReader:
    """Collects the records of one process and of those that it forked."""

    def __init__(self) -> None:
        self._rest = b""
        self._records = self._bytes = 0
        self._started = self._broken = False
        self.paths: set[bytes] = set()
        self.endings: set[bytes] = set()
        self.programs: set[str] = set()

    def feed_bytes(self, data: bytes) -> None:
        """Takes what has arrived; never raises."""
        self._bytes += len(data)
        if self._broken or self._bytes > _MOST_BYTES:
            self._broken, self._rest = True, b""
            return
        *records, self._rest = (self._rest + data).split(b"\0")
        self._records += len(records)
        self._broken = self._records > _MOST_RECORDS or len(self._rest) > _LONGEST
        for record in records:
            kind, text = record[:1], record[1:]
            if kind == b"f" and text[:1] == b"/":
                self.paths.add(text)
            elif kind == b"e" and text:
                self.endings.add(text)
            elif kind == b"p":
                self.programs.add(os.fsdecode(text))
            elif kind == b"h":
                self._started = True
            else:
                self._broken = True

    @property
    def is_complete(self) -> bool:
        """Whether everything that was opened is on the list, as far as Python's own hooks see."""
        return self._started and not self._broken and self.programs <= _HARMLESS

    @property
    def started_java(self) -> bool:
        """Whether files of `JAVA_READS` may have been opened unseen."""
        return not self.programs.isdisjoint({"java", "spark-submit"})


def trace_arguments(launch: WorkerLaunch) -> dict[str, str | list[str]] | None:
    """What the bootstrap gets about the trace; None if nothing is to be traced."""
    if not launch.traced:
        return None
    return {
        "module": MODULE,
        "file": str(_FILE),
        "roots": [str(root) for root in launch.traced],
    }


def list_opened_among(
    changed: Iterable[str],
    traces: Iterable[TraceReader],
    *,
    roots: Sequence[Path],
    checkout: Path,
) -> frozenset[str]:
    """Those of the changed files that were opened.

    Args:
        changed: Paths relative to the repository, as git names them; some are no files: a submodule
            stands for all that is in it, a link for what it leads to.
        traces: What was opened.
        roots: Directories that stand for the repository: the checkout, and the worker's copy.
        checkout: The one whose links are as they are in git.
    """
    changed, traces = list(changed), list(traces)
    opened = set(_make_relative_names({path for trace in traces for path in trace.paths}, roots))
    endings = tuple(f"/{_decode_name(ending)}" for trace in traces for ending in trace.endings)
    if any((checkout / path).is_symlink() for path in changed):
        opened |= {hop for path in list(opened) for hop in _follow_links(checkout, path)}
    above = {str(parent) for path in opened for parent in PurePosixPath(path).parents}
    return frozenset(
        path for path in changed if path in opened or path in above or f"/{path}".endswith(endings)
    )


def _make_relative_names(paths: Iterable[bytes], roots: Sequence[Path]) -> frozenset[str]:
    """Names below one of `roots`, spelled as `Git.changed_files` spells them."""
    prefixes = [os.fsencode(str(root)).rstrip(b"/") + b"/" for root in roots]
    found = {
        _decode_name(path[len(prefix) :])
        for path in paths
        for prefix in prefixes
        if path.startswith(prefix)
    }
    return frozenset(found | {source for path in found if (source := _find_source(path))})


def _decode_name(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _find_source(path: str) -> str | None:
    """The source of a file of byte code, which Python then has not opened."""
    if not path.endswith(".pyc"):
        return None
    try:
        return source_from_cache(path)
    except ValueError:
        return None


def _follow_links(checkout: Path, path: str) -> Iterator[str]:
    """What a path becomes by each link on its way, as long as it stays in the checkout."""
    for _ in range(_MOST_LINKS):
        parts = PurePosixPath(path).parts
        for end in range(1, len(parts) + 1):
            link = checkout.joinpath(*parts[:end])
            if link.is_symlink():
                target = os.path.join(link.parent, link.readlink(), *parts[end:])  # noqa: PTH118 - `normpath` takes texts
                path = os.path.relpath(os.path.normpath(target), checkout)
                break
        else:
            return
        if path.startswith(".."):
            return
        yield path
