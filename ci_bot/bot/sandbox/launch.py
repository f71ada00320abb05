"""What a caged process is started with: user, limits, room on the disks, and a fresh environment.

The environment is an allow-list, because a list of what to remove is never complete: the job holds
the GitHub token, the cache and OIDC tokens, the paths of the runner's command files, and tomorrow
something else. What SQLMesh, Spark, Java and Hadoop read is passed on automatically; the input
`worker-env` names warehouse credentials.

A container can set no quota, and the size of a tree leaves out files that were removed but are
still open. So the disk itself is checked, and the process is ended before it is full: then the bot
can still write its report, and others on the machine can continue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ci_bot.bot.sandbox.start_command import (
    CONTAINER_PATH,
    NEVER_PREFIXES,
    fix_worker_variables,
    is_never_passed_on,
)
from ci_bot.errors import BadInput
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.redaction import Redactor, list_encodings_of_secret, list_secret_values

if TYPE_CHECKING:
    from ci_bot.host import Machine

MIB = 1024 * 1024
DISK_RESERVE_BYTES = 1024 * MIB

# A disk that has no room for more files and directories is as full as one without bytes.
_RESERVED_FILES = 10_000
# Everybody's, so a process of another user can fill them, too; in the container nobody else does.
# They are only checked, never written to.
SHARED_DIRECTORIES = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # nosec B108


@dataclass(frozen=True)
class SandboxFreeSpace:
    """What a disk has left for a user; `files` is None if it does not count them."""

    bytes: int
    files: int | None


def read_free_space_for_sandbox(directory: Path) -> SandboxFreeSpace:
    """Returns what the disk of a directory has left; raises OSError if it cannot be asked."""
    facts = os.statvfs(directory)
    return SandboxFreeSpace(
        bytes=facts.f_bavail * facts.f_frsize, files=facts.f_favail if facts.f_files else None
    )


@dataclass(frozen=True)
class SandboxDiskReserve:
    """The part of one disk that has to stay free."""

    directory: Path
    least: SandboxFreeSpace
    read: Callable[[Path], SandboxFreeSpace] = read_free_space_for_sandbox

    def is_used_up(self, *, share: float = 1.0, more_bytes: int = 0) -> bool:
        """Whether less than (this share of) the reserve is left once `more_bytes` are written."""
        return bool(self.describe_lack(share=share, more_bytes=more_bytes))

    def describe_lack(self, *, share: float = 1.0, more_bytes: int = 0) -> str:
        """Describes what the disk lacks, as a clause in the past tense; empty if nothing."""
        try:
            left = self.read(self.directory)
        except OSError:
            return ""
        files, least = left.files, self.least.files
        if files is not None and least is not None and files < least * share:
            return f"{self.disk_name} had room for less than {least:,} more files"
        if left.bytes - more_bytes < self.least.bytes * share:
            return f"{self.disk_name} had less than {self.least.bytes / MIB:,.0f} MiB left"
        return ""

    @property
    def disk_name(self) -> str:
        """What people call the disk: nobody chose the path of a run's own directory."""
        if self.directory in SHARED_DIRECTORIES:
            return f"the disk of {self.directory}"
        return "the disk of the temporary directory"


def list_disk_reserves_of_sandbox(
    directories: Iterable[Path],
    reserved_bytes: int,
    *,
    read: Callable[[Path], SandboxFreeSpace] = read_free_space_for_sandbox,
) -> list[SandboxDiskReserve]:
    """Lists the reserve of each disk that holds one of the directories, by its free space now.

    If less is free than the reserve, the reserve is half of the free space: a small disk is no
    reason to do nothing.
    """
    found: dict[int, SandboxDiskReserve] = {}
    for directory in directories:
        with suppress(OSError):
            free, device = read(directory), directory.stat().st_dev
            least = SandboxFreeSpace(
                bytes=_limit_reserve_to_half(reserved_bytes, free.bytes),
                files=None
                if free.files is None
                else _limit_reserve_to_half(_RESERVED_FILES, free.files),
            )
            found.setdefault(device, SandboxDiskReserve(directory, least, read))
    return list(found.values())


def _limit_reserve_to_half(wanted: int, free: int) -> int:
    return wanted if wanted < free else free // 2


DEFAULT_PREFIXES = ("SQLMESH_", "SPARK_", "PYSPARK_", "JAVA_", "HADOOP_")
# The bot sets them. In `worker-env` they would have no effect, so they are refused.
_OURS = frozenset({*fix_worker_variables(None), "HOME", "TMPDIR"})
_ENTRY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_SHORTEST_SECRET = 8


@dataclass(frozen=True)
class SandboxVariables:
    """The input `worker-env`: exact names, and prefixes that were written as `NAME_*`."""

    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def requires_variable(self, name: str) -> bool:
        return name in self.names or name.startswith(self.prefixes)

    def pass_on(self, name: str) -> bool:
        """Whether the project gets the variable: it asked for it, or its engines read it."""
        wanted = name.startswith(DEFAULT_PREFIXES) or self.requires_variable(name)
        return wanted and not is_never_passed_on(name)


@dataclass(frozen=True)
class SandboxedEnvironment:
    """The worker's whole environment, and the names that were withheld because of their values."""

    variables: dict[str, str] = field(repr=False)
    withheld: tuple[str, ...] = ()


def parse_sandbox_variables(text: str) -> SandboxVariables:
    """Reads `worker-env`: names and `PREFIX_*`, separated by white space or commas.

    Raises:
        BadInput: One message with every entry that is not allowed.
    """
    entries = list(dict.fromkeys(re.split(r"[\s,]+", text.strip()))) if text.strip() else []
    problems = [
        f"`{entry}` {why}" for entry in entries if (why := _find_problem_of_sandbox_variable(entry))
    ]
    if problems:
        raise BadInput(
            f"Input `worker-env` cannot be used: {'; '.join(problems)}.",
            hint="Write names (`DB_PASSWORD`) and prefixes (`AWS_*`), apart by spaces or lines.",
            reason_code="bad_worker_env",
        )
    return SandboxVariables(
        names=tuple(entry for entry in entries if not entry.endswith("*")),
        prefixes=tuple(entry[:-1] for entry in entries if entry.endswith("*")),
    )


def make_redactor_for_sandbox(
    environ: Mapping[str, str],
    *,
    worker_env: str,
    secrets: Iterable[str] = (),
    own: Mapping[str, str] | None = None,
) -> Redactor:
    """Makes the redactor of every secret that this run can know: the bot's and the project's.

    Args:
        environ: The bot's own environment.
        worker_env: The input of that name. If it cannot be read, the project gets nothing from it.
        secrets: Values that belong to the bot alone.
        own: Variables that the project sets itself, in a .env file of a trusted person.
    """
    try:
        selection = parse_sandbox_variables(worker_env)
    except BadInput:
        selection = SandboxVariables()
    project = list_secret_values(own or {}, lambda _name: True)
    return Redactor([*secrets, *project, *list_secret_values(environ, selection.pass_on)])


def build_sandboxed_environment(
    parent: Mapping[str, str],
    *,
    selection: SandboxVariables,
    python: str,
    home: str,
    temporary: str,
    secrets: Iterable[str],
    path: str = CONTAINER_PATH,
    fixed: Mapping[str, str] | None = None,
) -> SandboxedEnvironment:
    """Builds the environment that the worker gets.

    Args:
        parent: The bot's own environment.
        selection: What `worker-env` names.
        python: The worker's interpreter, which PySpark's workers use too (unless the user says
            otherwise); an unset PYSPARK_PYTHON breaks Spark if the path has two Pythons.
        home: A private directory in the container, the user's own HOME elsewhere.
        temporary: A private directory for temporary files.
        secrets: Values that belong to the bot alone: its token, and the runner's.
        path: The executables; fixed in the container, whatever `env:` the workflow has.
        fixed: What the image sets and a workflow must not change, such as JAVA_HOME.

    Raises:
        BadInput: A variable named in `worker-env` holds one of `secrets`.
    """
    long_enough = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    forms = [form for secret in long_enough for form in list_encodings_of_secret(secret)]
    variables: dict[str, str] = {}
    withheld: list[str] = []
    for name, value in parent.items():
        if not selection.pass_on(name):
            continue
        if any(form in value for form in forms):
            if name in selection.names:
                raise BadInput(
                    f"`worker-env` names {name}, and its value holds the GitHub token or another "
                    "credential of the bot.",
                    hint=f"Take {name} out of `worker-env`: the pull request must not see it.",
                    reason_code="token_in_worker_env",
                )
            withheld.append(name)
            continue
        variables[name] = value
    variables.setdefault("PYSPARK_PYTHON", python)
    variables |= {
        **fix_worker_variables(path),
        "HOME": home,
        "TMPDIR": temporary,
        **(fixed or {}),
    }
    return SandboxedEnvironment(variables, tuple(sorted(withheld)))


def build_environment_on_machine(
    machine: Machine,
    *,
    selection: SandboxVariables,
    home: Path,
    temporary: Path,
    secrets: Iterable[str],
    own_machine: bool = False,
) -> SandboxedEnvironment:
    """The environment that the worker gets on a machine.

    Args:
        home: Its private home; on a machine without a user for the worker the user's own counts.
        own_machine: The project is the user's own: it sees what the user sees.

    Raises:
        BadInput: as `build_sandboxed_environment` does.
    """
    user = machine.worker_user
    return build_sandboxed_environment(
        machine.environ,
        selection=SandboxVariables(prefixes=("",)) if own_machine else selection,
        python=machine.python,
        home=str(home) if user else machine.environ.get("HOME", str(home)),
        temporary=str(temporary),
        secrets=secrets,
        path=CONTAINER_PATH if user else machine.environ.get("PATH", CONTAINER_PATH),
        fixed={"JAVA_HOME": user.java_home} if user and user.java_home else None,
    )


def prepend_python_path_in_sandbox(
    variables: Mapping[str, str], directories: Sequence[str]
) -> dict[str, str]:
    """Returns the environment with `directories` in front of PYTHONPATH.

    The worker itself is isolated and ignores this variable; the Python processes that Spark starts
    read it.
    """
    searched = [*directories, variables.get("PYTHONPATH", "")]
    if not directories:
        return dict(variables)
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in searched if path)}


def _find_problem_of_sandbox_variable(entry: str) -> str | None:
    if not _ENTRY.fullmatch(entry):
        return "is neither a name nor a prefix followed by `*`"
    name = entry.rstrip("*")
    if is_never_passed_on(name) or (entry.endswith("*") and name.startswith(NEVER_PREFIXES)):
        return "is never given to the worker"
    if entry in _OURS:
        return "is set by the bot"
    return None


# The worker's user in the container, and what the modes of files allow it.


READ, WRITE, ENTER = 0o4, 0o2, 0o1


@dataclass(frozen=True, kw_only=True)
class SandboxIdentity:
    """The user and group that the worker runs as, in the container."""

    uid: int
    gid: int


def has_sandboxed_user_right(status: os.stat_result, identity: SandboxIdentity, right: int) -> bool:
    """Whether `identity` has `right` on a file, by its mode bits; an owner can get any right."""
    if status.st_uid == identity.uid:
        return True
    shift = 3 if status.st_gid == identity.gid else 0
    return bool(status.st_mode >> shift & right)


# Ways out of the cage that the machine may leave open.
#
# A worker with a user of its own can write to the runner's command files or to the Docker socket
# only if their modes allow everybody, or if its uid happens to be the runner's. Then the cage is
# useless, so this is checked before every start in the container. A file in a directory that the
# worker may not enter is out of its reach, whatever its own mode is.


DOCKER_SOCKETS = (Path("/var/run/docker.sock"), Path("/run/docker.sock"))


def list_paths_open_to_sandboxed_user(
    paths: Iterable[Path], identity: SandboxIdentity
) -> list[Path]:
    """Lists those of `paths`, and of their directories, that the worker could write to."""
    found: dict[Path, None] = {}
    for path in paths:
        for place in (path, path.parent):
            if place.exists() and _is_path_open_to_sandboxed_user(place, identity):
                found[place] = None
    return list(found)


def require_paths_closed_to_sandbox(paths: Iterable[Path], identity: SandboxIdentity) -> None:
    """Raises BadInput if the worker could write to one of `paths`."""
    doors = list_paths_open_to_sandboxed_user(paths, identity)
    if doors:
        raise BadInput(
            f"The worker's user {identity.uid} could write to {', '.join(map(str, doors))}, and so "
            "could the pull request's code.",
            hint="Take the write permission for everybody away on the runner, or run the worker "
            "under another uid.",
            reason_code="open_door",
        )


def _is_path_open_to_sandboxed_user(place: Path, identity: SandboxIdentity) -> bool:
    # The path with its links resolved: a link may lead past the locked directory that it is in.
    real = place.resolve()
    reached = all(has_sandboxed_user_right(above.stat(), identity, ENTER) for above in real.parents)
    return (
        reached
        and has_sandboxed_user_right(real.stat(), identity, WRITE)
        and not _is_directory_sticky_for_sandbox(real)
    )


def _is_directory_sticky_for_sandbox(place: Path) -> bool:
    """Whether everybody may create files in it, but not touch those of others, as in /tmp."""
    return place.is_dir() and bool(place.stat().st_mode & 0o1000)


@dataclass(frozen=True, kw_only=True)
class SandboxLimits:
    """The worker's limits; the defaults are higher than what a large project needs.

    Attributes:
        memory_bytes: Of all its processes together, the JVM included; None: no limit.
        disk_reserve_bytes: What has to stay free on each disk that the worker writes to.
        processes: And threads, of the worker's user; only if it has a user of its own.
        log_bytes: Output after so many bytes is left out.
        progress_lines: Later ones are left out.
        grace_seconds: Between asking the worker to end and killing it.
        linger_seconds: How long the JVM may take to end on its own after the worker.
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
class SandboxLaunch:
    """How to start the worker.

    Attributes:
        python: Absolute path of the worker's interpreter; it may be another one than the bot's.
        variables: The worker's whole environment (see `build_sandboxed_environment`).
        directory: Where the worker starts: the copy of the checkout.
        channel_directory: A private directory of the bot, for the unnamed request and answer files.
        search_path: Directories at the end of the worker's `sys.path`; one of them holds `ci_bot`.
        places: How the worker's texts call the run's directories.
        overlay: Directory of the project's own pinned packages, which go before all others.
        identity: User and group to change to; None keeps the user's own (outside the container).
        in_container: Whether the rules of the container apply.
        guarded: What the worker must not be able to write to: the Docker socket, and in a workflow
            the runner's command files.
        module: The module that is run; only tests name another one.
        traced: Directories whose opened files the process reports; empty: it reports none.
        bounds: Limits that the process sets itself, by the names that the module `resource` has.
    """

    python: str
    variables: Mapping[str, str] = field(repr=False)
    directory: Path
    channel_directory: Path
    search_path: tuple[str, ...]
    places: PrivateDirectories = field(default_factory=lambda: PrivateDirectories({}), repr=False)
    overlay: Path | None = None
    identity: SandboxIdentity | None = None
    in_container: bool = False
    limits: SandboxLimits = SandboxLimits()
    guarded: tuple[Path, ...] = DOCKER_SOCKETS
    module: str = "ci_bot.worker"
    traced: tuple[Path, ...] = ()
    bounds: Mapping[str, int] = field(default_factory=dict)

    def check_separation(self, *, own_uid: int) -> None:
        """Refuses a launch in the container that would not separate the worker from the bot.

        Args:
            own_uid: The effective user id of the bot.

        Raises:
            BadInput: It says what to change; nothing was started.
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
        require_paths_closed_to_sandbox(self.guarded, self.identity)
