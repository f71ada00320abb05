"""One JVM for the Sparks of many tests, each of which has it alone for a while.

A JVM of its own is what people get, and the tests that are about it start one. For the others it
would be most of their processor time: a JVM that has seen Spark before starts the next one in a
quarter of it. PySpark itself offers the way: a process that finds PYSPARK_GATEWAY_PORT in its
environment connects to that JVM in place of starting one. Everything else of Spark is new each
time: the context, its configuration, the session, the catalog and its metastore. What belongs to a
JVM is not: its options, its jars, its current directory, its temporary directory and its end. A
test about any of these says `own_jvm`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
# Objects that a process leaves behind when it just ends stay in the JVM.
LEASES = 200
OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class _Jvm:
    """A JVM that outlives the Sparks in it."""

    def __init__(self) -> None:
        self._gateway: Any = None
        self._leases = 0

    def variables(self) -> dict[str, str]:
        """By which a process finds it; it is started where there is none."""
        if self._gateway is None:
            self._gateway, self._leases = _started(), 0
        found = self._gateway.gateway_parameters
        return {PORT: str(found.port), SECRET: found.auth_token}

    def lease(self) -> None:
        """The next one uses it, or its successor."""
        self._leases += 1
        if self._leases > LEASES:
            self.end()

    def settle(self) -> None:
        """Stops the Spark that a process has left running, as its JVM's end would have. Whatever
        was done to a JVM that cannot: it ends."""
        if self._gateway is None:
            return
        try:
            spark = self._gateway.jvm.org.apache.spark
            active = getattr(getattr(spark, "SparkContext$"), "MODULE$").getActive()
            if active.isDefined():
                active.get().stop()
            session = getattr(getattr(spark.sql, "SparkSession$"), "MODULE$")
            session.clearDefaultSession()
        except Exception:
            self.end()

    def end(self) -> None:
        """Ends the JVM, if there is one."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.proc.kill()
            gateway.proc.wait()


class SharedJvm:
    """The JVM of this process of tests, which finds it by the variables of its environment."""

    def __init__(self) -> None:
        self._jvm = _Jvm()
        self._open = self._shares = False

    def open(self) -> None:
        """From now on there is Java to share."""
        self._open = True
        self._into_the_environment()

    def begin(self, *, shares: bool) -> None:
        """The next test and its fixtures find the JVM without a Spark in it, or do not find it."""
        self._shares = shares
        self._jvm.settle()
        self._jvm.lease()
        # It keeps a metastore open that it has seen, and Derby lets one JVM at a time have one.
        if not shares:
            self._jvm.end()
        self._into_the_environment()

    def settle(self) -> None:
        """Stops the Spark that a process has left running."""
        self._jvm.settle()
        self._into_the_environment()

    def end(self) -> None:
        """Ends the JVM, if there is one."""
        self._jvm.end()

    def _into_the_environment(self) -> None:
        for name in (PORT, SECRET):
            os.environ.pop(name, None)
        if self._open and self._shares:
            os.environ.update(self._jvm.variables())


class LentJvm:
    """The JVM of the processes that keep a Spark from test to test, one after the other."""

    def __init__(self) -> None:
        self._jvm = _Jvm()
        self._lent = False

    @contextmanager
    def environment(self) -> Iterator[dict[str, str]]:
        """The environment of such a process. What it has seen of a metastore stays open in its JVM,
        so no other JVM may look there afterwards. While one has it, another gets its own."""
        if self._lent:
            yield alone()
            return
        self._lent = True
        self._jvm.lease()
        try:
            yield {**os.environ, **self._jvm.variables()}
        finally:
            self._jvm.settle()
            self._lent = False

    def end(self) -> None:
        """Ends the JVM, if there is one."""
        self._jvm.end()


def alone() -> dict[str, str]:
    """The environment of a process whose Spark starts its own JVM, and keeps it."""
    return {name: value for name, value in os.environ.items() if name not in (PORT, SECRET)}


class _Options:
    """What PySpark's start reads of its configuration. Its own class would ask the JVM of this very
    process, if there is one."""

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - PySpark's name
        return [("spark.driver.extraJavaOptions", OPTIONS)]


def _started() -> Any:
    from pyspark.java_gateway import launch_gateway

    # It would connect to the JVM of these variables.
    found = {name: os.environ.pop(name) for name in (PORT, SECRET) if name in os.environ}
    try:
        return launch_gateway(_Options())  # type: ignore[no-untyped-call]
    finally:
        os.environ.update(found)


JVM = SharedJvm()
LENT = LentJvm()
