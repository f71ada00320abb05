"""Starts Spark's session while its process still reads what the session is for.

After a JVM has started, its Spark takes another second or two, and each first statement loads
classes. Both need only the options with which the JVM was started on a guess. So a thread makes the
session and lets Spark parse; it opens no catalog and runs no statement. If the guess was wrong, the
session ends with its JVM, and Spark starts as usual.

This is only for a Spark inside the JVM: on a cluster, a wrong guess would take executors from
others. And nothing outside of the process may learn that Spark started, because nobody has checked
yet what it will be used for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ci_bot.worker.runtime.java import list_spark_jar_directories
from ci_bot.worker.runtime.java_process import HIVE, WATCH, start_java_early

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What PySpark itself adds to the environment when its context starts (`SparkContext._do_init`).
_ADDED = frozenset({"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"})
# One statement of each kind that comes later, so that Spark loads their classes.
_PARSED = ("DROP VIEW a.b", "SHOW TABLES IN a.b", "SELECT COUNT(*) AS n FROM a.b WHERE c = 1")

# Settings with which Spark writes or sends the fact that it starts.
_REPORTS = ("spark.eventLog.enabled", "spark.extraListeners", "spark.plugins")

# The environment and the working directory, which a JVM inherits.
Surroundings = tuple[Mapping[str, str], str]


def read_surroundings() -> Surroundings:
    """Reads what a JVM would inherit now."""
    kept = {name: value for name, value in os.environ.items() if name not in _ADDED}
    return kept, str(Path.cwd())


def is_spark_start_reported(options: Mapping[str, str], environ: Mapping[str, str]) -> bool:
    """Whether these options, those in the environment, or spark-defaults.conf may make Spark write
    or send the fact that it starts.
    """
    if "PYSPARK_SUBMIT_ARGS" in environ:
        return True  # it may name files
    own = environ.get("SPARK_CONF_DIR")
    found = (
        [Path(own)]
        if own
        else [jars.parent / "conf" for jars in list_spark_jar_directories(environ)]
    )
    files = [directory / "spark-defaults.conf" for directory in found]
    texts = [file.read_text("utf-8", errors="replace") for file in files if file.is_file()]
    texts += [*options, *options.values(), *environ.values()]
    return any(name in text for text in texts for name in _REPORTS)


class EarlySession:
    """A session that is starting.

    Args:
        options: What it starts with.
        start: Starts it; called on a thread of its own.
        warm_up: Called there with the session, once it can be claimed.
        adopt: Called with the session by the thread that claims it.
        end: Ends it and its JVM; gets None if its start failed.
        read: Reads what the JVM inherits.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        start: Callable[[Mapping[str, str]], Any],
        *,
        warm_up: Callable[[Any], None],
        adopt: Callable[[Any], None],
        end: Callable[[Any | None], None],
        read: Callable[[], Surroundings] = read_surroundings,
    ) -> None:
        self._options, self._start, self._read = dict(options), start, read
        self._warm_up, self._adopt, self._end = warm_up, adopt, end
        self._at_start = read()
        self._session: Any | None = None
        self._started = threading.Event()
        threading.Thread(target=self._start_session, name="early-session", daemon=True).start()

    @property
    def is_started(self) -> bool:
        return self._session is not None

    def claim_session(self, options: Mapping[str, str]) -> Any | None:
        """Waits for the session and returns it; ends it and returns None if the caller would start
        another one.
        """
        self._started.wait()
        if self._session is not None and (dict(options), self._read()) == (
            self._options,
            self._at_start,
        ):
            self._adopt(self._session)
            return self._session
        self._end(self._session)
        return None

    def _start_session(self) -> None:
        try:
            self._session = self._start(self._options)
        except Exception:
            # PySpark's own start will report the cause.
            self._session = None
        finally:
            self._started.set()
        if self._session is not None:
            # It saves time, if it works. Spark may have ended by now.
            with suppress(Exception):
                self._warm_up(self._session)


class _EarlySessionStarter:
    """The session that this process has started early, until it is claimed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._early: EarlySession | None = None

    def start_session(
        self,
        directory: Path,
        gateway: str | None,
        prepare: Callable[[], None],
        read: Callable[[str], Any],
    ) -> None:
        options = start_java_early(directory, gateway, prepare, read)
        if options is None or not options.get("spark.master", "").startswith("local"):
            return
        if is_spark_start_reported(options, os.environ):
            return
        # Imported here: a thread that is importing could hold the import's lock in a fork.
        import pyspark.sql  # noqa: F401

        WATCH.start_watching()
        with self._lock:
            self._early = EarlySession(
                options,
                _start_session,
                warm_up=_parse_statements,
                adopt=_activate_session,
                end=_end_session,
            )

    def claim_session(self, config: Mapping[str, Any]) -> SparkSession | None:
        with self._lock:
            early, self._early = self._early, None
        if early is None:
            return None
        options = {str(key): str(value) for key, value in config.items()}
        return early.claim_session(options | HIVE)

    def is_waiting(self) -> bool:
        with self._lock:
            return self._early is not None and self._early.is_started


_STARTER = _EarlySessionStarter()


def start_session_early(
    directory: Path,
    gateway: str | None,
    prepare: Callable[[], None],
    read: Callable[[str], Any],
) -> None:
    """Starts the JVM of a process that will most likely need one, and the session if its Spark is
    local; does nothing if Spark's options are not known yet. The arguments are those of
    `start_java_early`.
    """
    _STARTER.start_session(directory, gateway, prepare, read)


def claim_session(config: Mapping[str, Any]) -> SparkSession | None:
    """Returns the session that was started early, if it has these options; else None.

    Args:
        config: The options of the connection, without those that SQLMesh adds.
    """
    return _STARTER.claim_session(config)


def has_unclaimed_session() -> bool:
    """Whether a session has started early that nobody has needed."""
    return _STARTER.is_waiting()


def _start_session(options: Mapping[str, str]) -> SparkSession:
    """Starts a session as SQLMesh does. (`SparkConnectionConfig._static_connection_kwargs`)"""
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf()
    for name, value in options.items():
        if name not in HIVE:
            conf.set(name, value)
    return SparkSession.builder.config(conf=conf).enableHiveSupport().getOrCreate()


def _parse_statements(session: Any) -> None:
    parser = session._jsparkSession.sessionState().sqlParser()
    for statement in _PARSED:
        parser.parsePlan(statement)


def _activate_session(session: Any) -> None:
    """Makes a session the one of this thread, as starting it here would.

    Spark reads options such as the default catalog from the session of the asking thread, and from
    Spark's own defaults if the thread has none. (`SparkSession.__init__`)
    """
    session._jvm.SparkSession.setActiveSession(session._jsparkSession)


def _end_session(session: Any | None) -> None:
    """Ends a session and its JVM, so that PySpark starts another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    started: Any = SparkContext
    if session is not None:
        session.stop()
    # Before PySpark 3.4 all builders share their options.
    SparkSession.builder._options.clear()
    gateway, started._gateway, started._jvm = started._gateway, None, None
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        process.wait()
