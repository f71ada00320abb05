"""Spark's end, which goes on beside what is left to do without it.

A JVM whose process just leaves it takes most of a second to go, and whoever waits for it waits for
nothing. But a Spark that is killed before it has stopped leaves its application without an end: in
its event log, and at the cluster's manager. So it is stopped as soon as its last question is
answered, and once it has, its JVM has nothing left to do and is killed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from ci_bot.worker.process.channel import log

# On a cluster that does not answer. The cage gives the JVM a moment more, and ends it.
PATIENCE_SECONDS = 2.0


def active_context() -> Any | None:
    """The SparkContext of this process; None where there is none, or no PySpark."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None)


class SparkEnd:
    """Ends the Spark of this process, if it has one. Nothing here raises.

    Args:
        context: The SparkContext, asked for when Spark is to end.
        patience: Seconds that Spark gets to stop.
    """

    def __init__(
        self,
        context: Callable[[], Any | None] = active_context,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._context, self._patience = context, patience
        self._thread: threading.Thread | None = None
        self._jvm: Any = None

    def begin(self) -> None:
        """Spark will not be asked any more; comes back at once."""
        context = self._context()
        if self._thread is not None or context is None:
            return
        # The process that PySpark has started; none where it was given a JVM.
        self._jvm = getattr(context._gateway, "proc", None)
        self._thread = threading.Thread(
            target=_quietly, args=(context.stop,), name="spark-end", daemon=True
        )
        self._thread.start()

    def finish(self) -> None:
        """Ends the JVM of a Spark that has stopped. One that has not is left to the cage."""
        if self._thread is None:
            return
        self._thread.join(self._patience)
        if self._jvm is not None and not self._thread.is_alive():
            _quietly(self._jvm.kill)
            _quietly(self._jvm.wait)


def _quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except Exception as error:
        log(f"while Spark ends: {error}")
