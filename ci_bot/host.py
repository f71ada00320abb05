"""Everything that a run takes from the machine around it, read in one place and passed on.

No code below `cli` reads the environment, the clock, the current directory or random numbers.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Literal, TextIO

from ci_bot.errors import BadInput

# The Dockerfile writes it beside the interpreter. It is a file and not a variable, because a
# workflow's `env:` must not be able to open the cage.
CONTAINER_FILE = "ci-bot-container.json"


@dataclass(frozen=True)
class ContainerUser:
    """The unprivileged account that the image has for the worker, and the image's own Java.

    The image for reviews has neither Java nor Spark, so `java_home` is None there.
    """

    uid: int
    gid: int
    java_home: str | None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine as a run sees it.

    Attributes:
        environ: The process's environment.
        directory: The current directory.
        out: Where results go (stdout).
        log: Where everything else goes (stderr).
        python: The interpreter that the worker runs under.
        worker_user: Set in the container only; it switches the cage on.
        temporary: Where private directories are made.
        monotonic: Seconds for measuring.
        utc_now: The current moment.
        sleep: Waits some seconds.
        token: A new unguessable word at every call.
        jitter: A random number from 0 up to 1, for spreading retries.
        verbose: Whether the person at the terminal wants to see tracebacks.
        color: Whether that person wants colours; `auto`: if they can be shown.
    """

    environ: Mapping[str, str] = field(repr=False)
    directory: Path
    out: TextIO
    log: TextIO
    python: str
    worker_user: ContainerUser | None
    temporary: Path
    monotonic: Callable[[], float]
    utc_now: Callable[[], datetime]
    sleep: Callable[[float], None]
    token: Callable[[], str]
    jitter: Callable[[], float]
    verbose: bool = False
    color: Literal["auto", "always", "never"] = "auto"

    @property
    def has_spark(self) -> bool:
        """Whether Spark can be expected: only the image for reviews has none."""
        return self.worker_user is None or self.worker_user.java_home is not None

    def format_timestamp(self) -> str:
        """Returns the current time, ISO 8601 in UTC, to the second."""
        return self.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def read_date(self) -> date:
        """Returns today's date in UTC."""
        return self.utc_now().date()


def make_process_machine() -> Machine:
    """Makes the real machine.

    Raises:
        BadInput: The current directory is gone.
    """
    try:
        directory = Path.cwd()
    except FileNotFoundError as error:
        raise BadInput(
            "The current directory does not exist any more.",
            hint="Change to another one.",
            reason_code="bad_path",
        ) from error
    return Machine(
        environ=dict(os.environ),
        directory=directory,
        out=_open_stream(sys.stdout),
        log=_open_stream(sys.stderr),
        python=sys.executable,
        worker_user=read_container_user(Path(sys.prefix) / CONTAINER_FILE),
        temporary=Path(tempfile.gettempdir()),
        monotonic=time.monotonic,
        utc_now=lambda: datetime.now(timezone.utc),
        sleep=time.sleep,
        token=lambda: secrets.token_hex(32),
        jitter=random.random,
    )


def _open_stream(stream: TextIO | None) -> TextIO:
    """Returns the stream, or one that leads nowhere if the process was started without it."""
    return stream or Path(os.devnull).open("w", encoding="utf-8")


def read_container_user(path: Path) -> ContainerUser | None:
    """Reads the account that an image's file names; None if there is no such file.

    Raises:
        BadInput: the file names none.
    """
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        java = content["java_home"]
        return ContainerUser(
            uid=int(content["uid"]),
            gid=int(content["gid"]),
            java_home=None if java is None else str(java),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path} does not name the worker's user, so its cage cannot be built.",
            hint="Use the image as it is published.",
            reason_code="worker_is_root",
        ) from error
