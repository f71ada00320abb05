"""Runs git in a checkout that is not trusted.

A checkout's `.git/config` can name programs (fsmonitor, hooks, filters, ssh, diff drivers) that git
starts as the user who runs it, and that user is root here. So the checkout's own configuration is
used only to find facts about it. Commits and files are read through an empty repository of ours
that borrows only the checkout's objects. It has no configured program, no filter, and no server
from which git would fetch a missing object.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from ci_bot.bot.sandbox.deadline import SandboxDeadline, make_endless_sandbox_deadline
from ci_bot.errors import FULL_DISK_HINT, BadInput

NO_GIT = "There is no git program."

# A git process that answers while it runs: it is read in pieces, and never waited for after a
# deadline.
#
# One process answers any number of questions. `subprocess.run` is for one answer that fits into
# memory.
# that fits into memory.


_CHUNK = 256 * 1024
DOING = "while git read the checkout"


class GitStreamEnded(Exception):
    """The error if git's answer is incomplete: it failed, or the repository is broken."""


class GitStream:
    """One running git process.

    Args:
        process: A process with pipes for its input and output.
        deadline: Limits every wait for it.
    """

    def __init__(self, process: subprocess.Popen[bytes], deadline: SandboxDeadline) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self._process = process
        self._input, self._output = process.stdin, process.stdout.fileno()
        self._deadline = deadline
        self._held = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def send_line(self, line: str) -> None:
        """Sends one question. Read its answer before you send the next one.

        Raises:
            GitStreamEnded: git has ended, and cannot receive the question.
        """
        try:
            self._input.write(line.encode("utf-8", "surrogateescape") + b"\n")
            self._input.flush()
        except BrokenPipeError:
            raise GitStreamEnded from None

    def read_until(self, mark: bytes) -> bytes:
        """Returns the bytes before the next `mark`, and drops the mark.

        Raises:
            GitStreamEnded: there is no further mark.
        """
        seen = 0
        while (found := self._held.find(mark, seen)) < 0:
            seen = len(self._held)
            self._read_more()
        return self._take_bytes(found, drop=len(mark))

    def read_parts(self, mark: bytes) -> Iterator[bytes]:
        """Yields all bytes up to the end, in parts that end with `mark`.

        Raises:
            GitStreamEnded: the output is incomplete, because git failed.
        """
        while True:
            *whole, rest = bytes(self._held).split(mark)
            self._held[:] = rest
            yield from whole
            try:
                self._read_more()
            except GitStreamEnded:
                break
        if rest or self._process.wait() != 0:
            raise GitStreamEnded

    def read_exactly(self, count: int) -> bytes:
        """Returns the next `count` bytes."""
        while len(self._held) < count:
            self._read_more()
        return self._take_bytes(count)

    def skip_bytes(self, count: int) -> None:
        """Drops the next `count` bytes, and holds only a piece of them at a time."""
        while count > len(self._held):
            count -= len(self._held)
            self._held.clear()
            self._read_more()
        del self._held[:count]

    def close(self) -> None:
        self._selector.close()

    def _read_more(self) -> None:
        if not self._selector.select(self._deadline.get_timeout()):
            raise self._deadline.make_timeout_error(DOING)
        piece = os.read(self._output, _CHUNK)
        if not piece:
            raise GitStreamEnded
        self._held += piece

    def _take_bytes(self, count: int, *, drop: int = 0) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[: count + drop]
        return taken


@contextmanager
def stream_git_command(
    command: Sequence[str], *, environment: Mapping[str, str], deadline: SandboxDeadline
) -> Iterator[GitStream]:
    """Runs a git command that is read while it runs; it is killed at the end, finished or not.

    Raises:
        FileNotFoundError: there is no git program.
        TimedOut: the deadline passed.
    """
    deadline.check_time(DOING)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environment),
        cwd="/",
    ) as process:
        stream = GitStream(process, deadline)
        try:
            yield stream
        finally:
            stream.close()
            process.kill()


_NO_SPACE = re.compile(r"(?i)no space left on device|disk quota exceeded")
_HINT = "Set `fetch-depth: 2` and no `filter:` in the `with:` of actions/checkout."


class GitProgram:
    """git with its own environment and, for most commands, an empty repository of ours.

    Args:
        checkout: The checkout's root (the directory that has `.git`).
        private: A directory only for the bot, for the borrowing repository.
        executable: The git program.
        deadline: Limits every wait for git.
    """

    def __init__(
        self,
        checkout: Path,
        *,
        private: Path,
        executable: str = "git",
        deadline: SandboxDeadline | None = None,
    ) -> None:
        self.checkout = checkout.resolve()
        self._private = private
        self._borrowing = private / "borrowing.git"
        self._git = executable
        self._deadline = deadline or make_endless_sandbox_deadline()
        self._environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
            "HOME": str(private),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
        }

    def open_submodule(self, path: str, number: int) -> GitProgram | None:
        """Makes the same for a submodule that is checked out; None if it is not.

        A path through a link gives None: the tree that names it may not be the one that is checked
        out.
        """
        place = self.checkout / path
        if place.resolve() != place or not (place / ".git").exists():
            return None
        private = self._private / f"submodule-{number}"
        private.mkdir(mode=0o700, exist_ok=True)
        return GitProgram(place, private=private, executable=self._git, deadline=self._deadline)

    @cached_property
    def lfs_store(self) -> Path | None:
        """The directory of the contents that Git LFS has fetched; None if there is none."""
        done = self.run_inside(["rev-parse", "--path-format=absolute", "--git-common-dir"])
        if done.returncode != 0:
            return None
        found = (
            Path(done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")) / "lfs" / "objects"
        )
        return found if found.is_dir() else None

    @property
    def private_directory(self) -> Path:
        """A directory only for the bot."""
        return self._private

    def read_own_config(self, arguments: Sequence[str]) -> str:
        """Reads the checkout's own configuration as a file, without following what it names."""
        done = self.run_inside(["rev-parse", "--path-format=absolute", "--git-common-dir"])
        path = Path(done.stdout.decode("utf-8", "surrogateescape").strip()) / "config"
        if done.returncode != 0 or not path.is_file():
            return ""
        listing = self._run_git(["config", "--file", str(path), "--no-includes", *arguments])
        return listing.stdout.decode("utf-8", "replace")

    def run_borrowing(
        self, arguments: Sequence[str], *, feed: bytes = b"", extra: dict[str, str] | None = None
    ) -> bytes:
        done = self.try_borrow(arguments, feed=feed, extra=extra)
        if done.returncode != 0:
            raise self._make_unreadable_error(done.stderr.decode("utf-8", "replace").strip())
        return done.stdout

    def _make_unreadable_error(self, message: str) -> BadInput:
        first = message.splitlines()[:1] or ["it ended before it was done"]
        failed = f"Git could not read the checkout {self.checkout}"
        if _NO_SPACE.search(message):
            return BadInput(
                f"{failed}, because the disk is full: {first[0]}",
                hint=FULL_DISK_HINT,
                reason_code="disk_full",
            )
        return BadInput(
            f"{failed}: {first[0]}",
            hint=_HINT,
            reason_code="git_failed",
        )

    def try_borrow(
        self, arguments: Sequence[str], *, feed: bytes = b"", extra: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return self._run_git(
            [f"--git-dir={self._borrowing}", *arguments],
            feed=feed,
            extra={**self._borrowing_variables, **(extra or {})},
        )

    @cached_property
    def _borrowing_variables(self) -> dict[str, str]:
        """Variables for git to read the checkout's objects; made with the borrowing repository."""
        self._run_git(["init", "--quiet", "--bare", "--template=", str(self._borrowing)])
        return {"GIT_OBJECT_DIRECTORY": str(self.locate_inside("objects"))}

    def add_object_directory(self, more: Path) -> dict[str, str]:
        """Makes git read objects from this directory, too, from now on.

        Returns:
            The variables with which git writes there and also reads the checkout's objects.
        """
        checkout = self._borrowing_variables["GIT_OBJECT_DIRECTORY"]
        self._borrowing_variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quote_path(str(more))
        return {
            "GIT_OBJECT_DIRECTORY": str(more),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_path(checkout),
        }

    def locate_inside(self, name: str) -> Path:
        """Returns where the checkout's repository has its `index`, its `objects`, and so on."""
        found = self.run_inside(["rev-parse", "--path-format=absolute", "--git-path", name])
        return Path(found.stdout.decode("utf-8", "surrogateescape").rstrip("\n"))

    def run_as_user(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, feed: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs git as the user does, with all that their configuration names."""
        return self._run_git(["-C", str(self.checkout), *arguments], feed=feed, only=environment)

    @contextmanager
    def open_stream(self, arguments: Sequence[str]) -> Iterator[GitStream]:
        """Opens a git process over the borrowed objects that is read while it runs."""
        command = [self._git, f"--git-dir={self._borrowing}", *arguments]
        environment = {**self._environment, **self._borrowing_variables}
        try:
            with stream_git_command(
                command, environment=environment, deadline=self._deadline
            ) as stream:
                yield stream
        except GitStreamEnded:
            raise self._make_unreadable_error("") from None

    def run_inside(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Runs git in the checkout; only for `rev-parse`, which starts no configured program."""
        safe = ["-c", f"safe.directory={self.checkout}", "-c", "core.fsmonitor=false"]
        return self._run_git(
            [*safe, "-c", f"core.hooksPath={os.devnull}", "-C", str(self.checkout), *arguments]
        )

    def _run_git(
        self,
        arguments: Sequence[str],
        *,
        feed: bytes = b"",
        extra: dict[str, str] | None = None,
        only: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        self._deadline.check_time(DOING)
        try:
            return subprocess.run(
                [self._git, *arguments],
                input=feed,
                capture_output=True,
                env=self._environment | (extra or {}) if only is None else only,
                cwd="/",
                timeout=self._deadline.get_timeout(),
                check=False,
            )
        except FileNotFoundError as error:
            raise BadInput(NO_GIT, hint="Install git.", reason_code="git_failed") from error
        except subprocess.TimeoutExpired:
            raise self._deadline.make_timeout_error(DOING) from None


def _quote_path(path: str) -> str:
    """Quotes a path, if needed, for a variable with several paths, as git reads it."""
    if os.pathsep not in path and not path.startswith('"'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
