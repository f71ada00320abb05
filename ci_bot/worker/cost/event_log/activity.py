"""`ci-bot learn`: the event logs of prod's Spark into the ledger. No model is loaded for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlmesh.core.config.connection import SparkConnectionConfig

from ci_bot.contracts.cost.learned import LearnDocument
from ci_bot.contracts.messages import LearnRequest
from ci_bot.worker import compat
from ci_bot.worker.cost.event_log.files import (
    FileSystem,
    HadoopFiles,
    LocalFiles,
    local_path,
    unreadable,
)
from ci_bot.worker.cost.event_log.learning import Learned, learn
from ci_bot.worker.process.clock import Clock
from ci_bot.worker.project import opening
from ci_bot.worker.project.directories import place_of
from ci_bot.worker.project.opening import versions_of
from ci_bot.worker.records.cost_ledger import CostLedger


@dataclass(frozen=True)
class LearnPorts:
    """What learning needs from its surroundings. `before_java` is called before a JVM starts."""

    clock: Clock
    progress: Callable[[str, str], None]
    before_java: Callable[[], None]
    stop: Callable[[], bool]


def learn_logs(request: LearnRequest, ports: LearnPorts) -> LearnDocument:
    """Reads the logs, and writes what they tell of tables of SQLMesh.

    Raises:
        BadInput: there is no state yet, or the directory cannot be read.
    """
    started = ports.clock.now()
    place = place_of(request, request.projects)
    with opening.state_to_write(place, ports.before_java, ports.clock) as context:
        ledger = CostLedger(compat.state_adapter(context))
        ledger.prepare()
        found = into_ledger(ledger, request.event_logs, _settings(context), ports)
    return LearnDocument(
        directory=request.event_logs,
        logs=found.counts["logs"],
        read=found.counts["read"],
        known=found.counts["known"],
        foreign=found.counts["foreign"],
        other_version=found.counts["other_version"],
        cut=found.counts["cut"],
        unreadable=found.counts["unreadable"],
        old=found.counts["old"],
        writes=found.counts["writes"],
        tables=len(found.tables),
        remark=found.remark,
        seconds=round(ports.clock.now() - started, 3),
        versions=versions_of(None),
    )


def into_ledger(
    ledger: CostLedger, directory: str, settings: dict[str, str], ports: LearnPorts
) -> Learned:
    """`learn`, with the file system that the directory is on.

    Raises:
        BadInput: the directory cannot be read.
    """

    @cache
    def hadoop() -> HadoopFiles:
        ports.before_java()
        return HadoopFiles(_jvm(), settings)

    def decompressed(path: str) -> AbstractContextManager[str]:
        return hadoop().plain(f"file://{path}")

    here = local_path(directory)
    try:
        files: FileSystem = LocalFiles(decompressed) if here is not None else hadoop()
        return learn(
            files,
            here or directory,
            ledger,
            now=time.time(),
            stop=ports.stop,
            progress=lambda message: ports.progress("learn", message),
        )
    except OSError as error:
        raise unreadable(directory, error) from error


def _settings(context: Any) -> dict[str, str]:
    connection = context.config.get_connection(context.selected_gateway)
    if not isinstance(connection, SparkConnectionConfig):
        return {}
    return {key: str(value) for key, value in connection.config.items()}


def _jvm() -> Any:
    """Spark's classes, without a session: the JVM of one that runs here, or a new one."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    launch: Any = launch_gateway  # PySpark has no types for it
    return (SparkContext._gateway or launch()).jvm
