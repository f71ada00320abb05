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
from typing import Any

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
# Objects that a process leaves behind when it just ends stay in the JVM.
LEASES = 200
OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


class SharedJvm:
    """The JVM of this process of tests, which finds it by the variables of its environment."""

    def __init__(self) -> None:
        self._gateway: Any = None
        self._leases = 0
        self._open = self._shares = False

    def open(self) -> None:
        """From now on there is Java to share."""
        self._open = True
        self._into_the_environment()

    def begin(self, *, shares: bool) -> None:
        """The next test and its fixtures find the JVM without a Spark in it, or do not find it."""
        self._shares = shares
        self.settle()
        self._leases += 1
        # It keeps a metastore open that it has seen, and Derby lets one JVM at a time have one.
        if not shares or self._leases > LEASES:
            self.end()
        self._into_the_environment()

    def _into_the_environment(self) -> None:
        for name in (PORT, SECRET):
            os.environ.pop(name, None)
        if not (self._open and self._shares):
            return
        if self._gateway is None:
            self._gateway, self._leases = _started(), 1
        found = self._gateway.gateway_parameters
        os.environ.update({PORT: str(found.port), SECRET: found.auth_token})

    def settle(self) -> None:
        """Stops the Spark that a process has left running, as its JVM's end would have."""
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
            # Whatever a test did to it, the next one gets another.
            self.end()
            self._into_the_environment()

    def end(self) -> None:
        """Ends the JVM, if there is one."""
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            gateway.proc.kill()
            gateway.proc.wait()


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

    return launch_gateway(_Options())  # type: ignore[no-untyped-call]


JVM = SharedJvm()
