"""What a caged process is started with, and the checks before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_bot.bot.cage.doors import DOCKER_SOCKETS, require_closed
from ci_bot.bot.cage.user import Identity
from ci_bot.contracts.places import Places
from ci_bot.errors import BadInput

__all__ = ["Identity", "Launch", "WorkerLimits"]

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class WorkerLimits:
    """The worker's bounds; each has a default that a large project does not reach.

    Args:
        memory_bytes: Of all its processes together, the JVM included; None: no limit.
        processes: And threads, of the worker's user; only where it has a user of its own.
        log_bytes: What is printed after so much is left out.
        progress_lines: Later ones are left out.
        grace_seconds: Between asking the worker to end and killing it.
        linger_seconds: What the JVM gets to leave by itself once the worker has ended.
    """

    memory_bytes: int | None = None
    processes: int | None = 4_096
    answer_bytes: int = 32 * MIB
    log_bytes: int = 64 * MIB
    log_line_characters: int = 16_384
    progress_line_bytes: int = 8_192
    progress_lines: int = 10_000
    grace_seconds: float = 5.0
    linger_seconds: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Launch:
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
    places: Places = field(default_factory=lambda: Places({}), repr=False)
    overlay: Path | None = None
    identity: Identity | None = None
    in_container: bool = False
    limits: WorkerLimits = WorkerLimits()
    guarded: tuple[Path, ...] = DOCKER_SOCKETS
    module: str = "ci_bot.worker"
    traced: tuple[Path, ...] = ()
    bounds: Mapping[str, int] = field(default_factory=dict)

    def check(self, *, own_uid: int) -> None:
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
