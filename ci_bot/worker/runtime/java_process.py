"""Spark's JVM as a process: starts it while SQLMesh is imported, and notices its end.

A JVM takes as long to start as SQLMesh takes to import, and they do not depend on each other. Its
options are needed before there is a configuration, so they are guessed from the plain text of a
project's YAML. The guess is used only if Spark's final options and environment are equal to it;
else that JVM ends, and Spark starts as usual.

PySpark learns that its JVM is gone when the connection to it is closed. A JVM that is killed while
it starts another process (as Hadoop does for every permission that it sets) leaves that one with
copies of its open sockets, so no connection is closed and PySpark waits forever. So this process
watches its JVM, and ends the processes of a dead one. It finds them by their environment: each JVM
starts with a unique path in it, and its children inherit it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ci_bot.errors import BotError
from ci_bot.jinja_text import EXPRESSION, replace_templates
from ci_bot.worker.runtime.java import read_spark_version
from ci_bot.worker.runtime.process import write_worker_log_line

if TYPE_CHECKING:
    from pyspark import SparkContext


# The entry of a JVM's environment by which it is found. (`pyspark.java_gateway.launch_gateway`)
MARK = b"_PYSPARK_DRIVER_CONN_INFO_PATH="
# A process that is just starting appears a little later.
_LOOKS = 20
_PAUSE = 0.25
_PROCESSES = Path("/proc")


class JavaProcess(Protocol):
    """A process that this one has started."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...


def find_active_java() -> JavaProcess | None:
    """Finds the JVM that PySpark has started in this process; None if there is none."""
    context: type[SparkContext] | None = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    found: JavaProcess | None = getattr(getattr(context, "_gateway", None), "proc", None)
    return found


class JavaWatch:
    """A watch over one JVM after the other on a separate thread, from `start_watching` on.

    Args:
        java: Returns the current JVM.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        java: Callable[[], JavaProcess | None] = find_active_java,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._java, self._sleep = java, sleep
        self._lock = threading.Lock()
        self._started = False

    def start_watching(self) -> None:
        """Starts the watch; does nothing if it has started."""
        with self._lock:
            if self._started:
                return
            self._started = True
        threading.Thread(target=self._run_watch, name="java-watch", daemon=True).start()

    def _run_watch(self) -> None:
        ended: JavaProcess | None = None
        while True:
            java = self._java()
            if java is not None and java is not ended:
                self._watch_java(java)
                ended = java
            self._sleep(_PAUSE)

    def _watch_java(self, java: JavaProcess) -> None:
        mark = _read_java_mark(java.pid)
        while java.poll() is None:
            self._sleep(_PAUSE)
        for _ in range(_LOOKS if mark else 0):
            left = find_java_processes_with(mark)
            for pid in left:
                write_worker_log_line(
                    f"Java has ended and left process {pid}, which is ended, too."
                )
                _kill_java_process(pid)
            self._sleep(_PAUSE)


WATCH = JavaWatch()


def find_java_processes_with(mark: bytes) -> list[int]:
    """Finds this user's processes whose environment has this entry."""
    pids = [int(entry.name) for entry in _PROCESSES.iterdir() if entry.name.isdigit()]
    return [
        pid for pid in pids if pid != os.getpid() and mark in _read_environment_of_java_process(pid)
    ]


def _read_java_mark(pid: int) -> bytes:
    """Reads the entry of a JVM's environment that no other JVM has; empty if it cannot be read."""
    return next(
        (item for item in _read_environment_of_java_process(pid) if item.startswith(MARK)), b""
    )


def _read_environment_of_java_process(pid: int) -> list[bytes]:
    try:
        return (_PROCESSES / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill_java_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError as error:
        write_worker_log_line(f"Process {pid} could not be ended: {error}")


FILES = ("config.yaml", "config.yml", "sqlmesh.yaml", "sqlmesh.yml")
# The setting that `enableHiveSupport` adds, which SQLMesh's connection calls.
HIVE = {"spark.sql.catalogImplementation": "hive"}
_UNTRIED = (4, 0)
# A placeholder for the output of a template.
_UNKNOWN = "\u2400"


class JavaSparkOptions(Protocol):
    """Spark's configuration, as PySpark hands it to the start of a JVM."""

    def getAll(self) -> Sequence[tuple[str, str]]: ...  # noqa: N802 - PySpark's name


# Starts a JVM with PySpark's options, and returns the gateway to it.
StartJava = Callable[[Any], Any]


def guess_spark_options_for_java(
    directory: Path, gateway: str | None, read: Callable[[str], Any]
) -> dict[str, str] | None:
    """Guesses Spark's start options; None if the file does not have them as plain text.

    Args:
        directory: The project's, or the first of several.
        gateway: The requested gateway; None is the project's default.
        read: Returns the document of a YAML text; None if there is none.
    """
    files = [directory / name for name in FILES if (directory / name).is_file()]
    if len(files) != 1 or (directory / "config.py").exists() or (directory / ".env").exists():
        return None
    text = files[0].read_text(encoding="utf-8", errors="replace")
    document = (
        None if "{%" in text else read(replace_templates(text, lambda _: _UNKNOWN, (EXPRESSION,)))
    )
    gateways = _make_mapping(_make_mapping(document).get("gateways"))
    name = gateway or _make_mapping(document).get("default_gateway") or next(iter(gateways), None)
    connection = _make_mapping(_make_mapping(gateways.get(name)).get("connection"))
    if connection.get("type") != "spark" or connection.get("config_dir"):
        return None
    options = {
        str(key): str(value) for key, value in _make_mapping(connection.get("config")).items()
    }
    if _UNKNOWN in "".join((*options, *options.values())):
        return None
    return options | HIVE


def _make_mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def start_java_early(
    directory: Path,
    gateway: str | None,
    prepare: Callable[[], None],
    read: Callable[[str], Any],
) -> dict[str, str] | None:
    """Starts the JVM of a process that will most likely need one, and returns its start options;
    None and no JVM if the process has one, or if Spark's options are not known yet.

    Args:
        prepare: Prepares the environment for Spark; may be called again later.
        read: Returns the document of a YAML text; None if there is none.
    """
    options = guess_spark_options_for_java(directory, gateway, read)
    # The options that PySpark itself adds are known for the versions before 4.
    if options is None or read_spark_version() >= _UNTRIED:
        return None
    try:
        prepare()
    except BotError:
        return None  # reported when Spark is really needed
    import pyspark.context

    # (`SparkContext._ensure_initialized`, which calls it by its name in the module)
    module: Any = pyspark.context
    if module.SparkContext._gateway is not None:
        return None
    module.launch_gateway = EarlyJava(options, module.launch_gateway, os.environ).launch_java
    return options


class EarlyJava:
    """A JVM that is starting.

    Args:
        options: Its start options.
        launch: Starts it; called on a thread of its own.
        environ: The environment at its start; it must be the same when Spark starts.
    """

    def __init__(
        self, options: Mapping[str, str], launch: StartJava, environ: Mapping[str, str]
    ) -> None:
        self._options, self._launch, self._environ = dict(options), launch, environ
        self._at_start = dict(environ)
        self._gateway: Any = None
        self._thread = threading.Thread(target=self._start_java, name="early-java", daemon=True)
        self._thread.start()

    def launch_java(self, conf: JavaSparkOptions) -> Any:
        """Replaces PySpark's own start: returns this JVM if its options match, else starts another.

        Raises:
            Exception: whatever PySpark raises if a JVM does not start.
        """
        if dict(conf.getAll()) == self._options and dict(self._environ) == self._at_start:
            self._thread.join()
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                return gateway
        else:
            # It may still be starting; nothing needs to wait for its end.
            threading.Thread(target=self._end_java, name="early-java-end", daemon=True).start()
        return self._launch(conf)

    def _start_java(self) -> None:
        try:
            self._gateway = self._launch(_FixedJavaOptions(self._options))
        except Exception:
            # PySpark's own start will report the cause.
            self._gateway = None

    def _end_java(self) -> None:
        self._thread.join()
        if self._gateway is not None:
            self._gateway.proc.kill()
            self._gateway.proc.wait()


class _FixedJavaOptions:
    """Options with the one method that PySpark's start uses."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - PySpark's name
        return list(self._options.items())
