"""What a caged process is started with, and the checks before anything is started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.bot.sandbox.disk_reserve import DISK_RESERVE_BYTES, MIB
from ci_bot.errors import BadInput
from ci_bot.protocol.directories import PrivateDirectories

# The worker's user in the container, and what the modes of files allow it.


READ, WRITE, ENTER = 0o4, 0o2, 0o1


@dataclass(frozen=True, kw_only=True)
class WorkerIdentity:
    """The user and group that the worker runs as, in the container."""

    uid: int
    gid: int


def has_file_right(status: os.stat_result, identity: WorkerIdentity, right: int) -> bool:
    """Whether `identity` has `right` on a file, by its mode bits; an owner can take any right."""
    if status.st_uid == identity.uid:
        return True
    shift = 3 if status.st_gid == identity.gid else 0
    return bool(status.st_mode >> shift & right)


# Ways out of the cage that would stand open because of the machine, not because of us.
#
# A worker under a user of its own cannot write to the runner's command files or to the Docker
# socket, unless their modes allow everybody, or the worker's uid happens to be the runner's. Then
# the cage holds nothing, so this is looked at before every start in the container. What stands in
# a directory that the worker may not enter is out of its reach, whatever its own mode says.


DOCKER_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/docker.sock"))


def open_doors(paths: Iterable[Path], identity: WorkerIdentity) -> list[Path]:
    """Those of `paths`, and of the directories that hold them, that the worker could write to."""
    found: dict[Path, None] = {}
    for path in paths:
        for place in (path, path.parent):
            if place.exists() and _is_open(place, identity):
                found[place] = None
    return list(found)


def require_closed(paths: Iterable[Path], identity: WorkerIdentity) -> None:
    """Raise BadInput if the worker could reach one of `paths`."""
    doors = open_doors(paths, identity)
    if doors:
        raise BadInput(
            f"The worker's user {identity.uid} could write to {', '.join(map(str, doors))}, and so "
            "could the pull request's code.",
            hint="Take the write permission for everybody away on the runner, or run the worker "
            "under another uid.",
            reason_code="open_door",
        )


def _is_open(place: Path, identity: WorkerIdentity) -> bool:
    # The path as it resolves: a link may lead past the locked directory that it stands in.
    real = place.resolve()
    reached = all(has_file_right(above.stat(), identity, ENTER) for above in real.parents)
    return reached and has_file_right(real.stat(), identity, WRITE) and not _is_sticky(real)


def _is_sticky(place: Path) -> bool:
    """In /tmp and its like everybody may create files, but not touch those of others."""
    return place.is_dir() and bool(place.stat().st_mode & 0o1000)


__all__ = ["WorkerIdentity", "WorkerLaunch", "WorkerLimits"]


@dataclass(frozen=True, kw_only=True)
class WorkerLimits:
    """The worker's bounds; each has a default that a large project does not reach.

    Args:
        memory_bytes: Of all its processes together, the JVM included; None: no limit.
        disk_reserve_bytes: What has to stay free of each disk that the worker writes to.
        processes: And threads, of the worker's user; only if it has a user of its own.
        log_bytes: What is printed after so much is left out.
        progress_lines: Later ones are left out.
        grace_seconds: Between asking the worker to end and killing it.
        linger_seconds: What the JVM gets to leave by itself once the worker has ended.
    """

    memory_bytes: int | None = None
    disk_reserve_bytes: int = DISK_RESERVE_BYTES
    processes: int | None = 4_096
    answer_bytes: int = 32 * MIB
    log_bytes: int = 64 * MIB
    log_line_characters: int = 16_384
    progress_line_bytes: int = 8_192
    progress_lines: int = 10_000
    grace_seconds: float = 5.0
    linger_seconds: float = 0.5


@dataclass(frozen=True, kw_only=True)
class WorkerLaunch:
    """How to start the worker.

    Args:
        python: Absolute path of the worker's interpreter; it may be another one than the bot's.
        variables: All that the worker's environment holds (see `environment.build`).
        directory: Where the worker starts: the copy of the checkout.
        channel_directory: A private directory of the bot, for the unnamed request and answer files.
        search_path: Directories at the end of the worker's `sys.path`; one of them holds `ci_bot`.
        places: What the run's directories are called in all that the worker says.
        overlay: Directory of the project's own pinned packages, which go before all others.
        identity: User and group to change to; None keeps the user's own (outside the container).
        in_container: Whether the rules of the container hold.
        guarded: What the worker must not be able to write to: the Docker socket, and in a workflow
            the runner's command files.
        module: The module that is run; only tests name another one.
        traced: Directories of which the process tells what it opens (see `trace`); none: nothing.
        bounds: Limits that the process sets itself, by the names that the module `resource` has.
    """

    python: str
    variables: Mapping[str, str] = field(repr=False)
    directory: Path
    channel_directory: Path
    search_path: tuple[str, ...]
    places: PrivateDirectories = field(default_factory=lambda: PrivateDirectories({}), repr=False)
    overlay: Path | None = None
    identity: WorkerIdentity | None = None
    in_container: bool = False
    limits: WorkerLimits = WorkerLimits()
    guarded: tuple[Path, ...] = DOCKER_SOCKETS
    module: str = "ci_bot.worker"
    traced: tuple[Path, ...] = ()
    bounds: Mapping[str, int] = field(default_factory=dict)

    def check_separation(self, *, own_uid: int) -> None:
        """Refuse a launch in the container that would not separate the worker from the bot.

        Args:
            own_uid: The effective user id of the bot.

        Raises:
            BadInput: With what to change; nothing was started.
        """
        if not self.in_container:
            return
        if self.identity is None or self.identity.uid == 0 or self.identity.gid == 0:
            raise BadInput(
                "The worker would run the pull request's code as root.",
                hint="Use the image as published; it has an unprivileged user for the worker.",
                reason_code="worker_is_root",
            )
        if own_uid != 0:
            raise BadInput(
                f"The container runs as uid {own_uid}, so the worker gets no user of its own.",
                hint="Start the container as root, which is what GitHub does for Docker actions "
                "(no `--user` in `options`).",
                reason_code="cannot_drop_privileges",
            )
        require_closed(self.guarded, self.identity)
