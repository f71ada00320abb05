"""Spark's JVM, started while SQLMesh is still being imported.

A JVM takes as long to start as SQLMesh takes to be imported, and neither needs the other. What it
is started with has to be known before there is a configuration, so it is guessed from what stands
in a project's YAML in plain text. A guess counts only if it is what Spark is asked to start with
in the end, options and environment alike; else that JVM ends, and Spark starts as ever.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ci_bot.errors import BotError
from ci_bot.worker.runtime.java import spark_version

FILES = ("config.yaml", "config.yml", "sqlmesh.yaml", "sqlmesh.yml")
# What `enableHiveSupport` adds, as SQLMesh's connection calls it.
HIVE = {"spark.sql.catalogImplementation": "hive"}
_UNTRIED = (4, 0)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
# Stands for what a template would give.
_UNKNOWN = "\u2400"


class SparkOptions(Protocol):
    """Spark's configuration, as PySpark hands it to the start of a JVM."""

    def getAll(self) -> Sequence[tuple[str, str]]: ...  # noqa: N802 - PySpark's name


StartJava = Callable[[Any], Any]
"""Starts a JVM with PySpark's options, and gives the gateway to it."""


def guess_spark_options(
    directory: Path, gateway: str | None, read: Callable[[str], Any]
) -> dict[str, str] | None:
    """The options that Spark will be started with; None where they do not stand there in plain.

    Args:
        directory: The project's, or the first of several.
        gateway: The gateway that was asked for; None is the project's default.
        read: Gives the document of a YAML text; None if there is none.
    """
    files = [directory / name for name in FILES if (directory / name).is_file()]
    if len(files) != 1 or (directory / "config.py").exists() or (directory / ".env").exists():
        return None
    text = files[0].read_text(encoding="utf-8", errors="replace")
    document = None if "{%" in text else read(_EXPRESSION.sub(_UNKNOWN, text))
    gateways = _as_mapping(_as_mapping(document).get("gateways"))
    name = gateway or _as_mapping(document).get("default_gateway") or next(iter(gateways), None)
    connection = _as_mapping(_as_mapping(gateways.get(name)).get("connection"))
    if connection.get("type") != "spark" or connection.get("config_dir"):
        return None
    options = {str(key): str(value) for key, value in _as_mapping(connection.get("config")).items()}
    if _UNKNOWN in "".join((*options, *options.values())):
        return None
    return options | HIVE


def _as_mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def start_early(
    directory: Path,
    gateway: str | None,
    prepare: Callable[[], None],
    read: Callable[[str], Any],
) -> None:
    """Starts the JVM of a process that will most likely need one; does nothing where it has one,
    or the options of Spark are not known yet.

    Args:
        prepare: Readies the environment for Spark, and may be called again later.
        read: Gives the document of a YAML text; None if there is none.
    """
    options = guess_spark_options(directory, gateway, read)
    # Which options PySpark itself adds was looked up for the versions before 4.
    if options is None or spark_version() >= _UNTRIED:
        return
    try:
        prepare()
    except BotError:
        return  # told where Spark is really needed
    import pyspark.context

    # (`SparkContext._ensure_initialized`, which calls it by its name in the module)
    module: Any = pyspark.context
    if module.SparkContext._gateway is not None:
        return
    module.launch_gateway = EarlyJava(options, module.launch_gateway, os.environ).launch_java


class EarlyJava:
    """A JVM that is on its way.

    Args:
        options: What it is started with.
        launch: Starts it; called on a thread of its own.
        environ: The environment that it is started in, and that has to be the same in the end.
    """

    def __init__(
        self, options: Mapping[str, str], launch: StartJava, environ: Mapping[str, str]
    ) -> None:
        self._options, self._launch, self._environ = dict(options), launch, environ
        self._at_start = dict(environ)
        self._gateway: Any = None
        self._thread = threading.Thread(target=self._start_java, name="early-java", daemon=True)
        self._thread.start()

    def launch_java(self, conf: SparkOptions) -> Any:
        """In place of PySpark's own start: this JVM where it is what is asked for, else another.

        Raises:
            Exception: what PySpark raises where a JVM does not start.
        """
        if dict(conf.getAll()) == self._options and dict(self._environ) == self._at_start:
            self._thread.join()
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                return gateway
        else:
            # It may be on its way still, and its end is nothing to wait for.
            threading.Thread(target=self._end_java, name="early-java-end", daemon=True).start()
        return self._launch(conf)

    def _start_java(self) -> None:
        try:
            self._gateway = self._launch(_FixedOptions(self._options))
        except Exception:
            # The same start, asked for in earnest, says why it fails.
            self._gateway = None

    def _end_java(self) -> None:
        self._thread.join()
        if self._gateway is not None:
            self._gateway.proc.kill()
            self._gateway.proc.wait()


class _FixedOptions:
    """Options of which PySpark's start reads no more than this."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - PySpark's name
        return list(self._options.items())
