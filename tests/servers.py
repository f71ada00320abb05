"""Servers that tests start and stop themselves: a Hive metastore service, and a Spark cluster."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ci_bot.worker.runtime.java import find_java_environment
from tests.networks import NetworkMachine

START_SECONDS = 90.0
LOOPBACK = NetworkMachine("127.0.0.1", ())

HIVE_SITE = """\
<configuration>
  <property><name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:derby:;databaseName={root}/metastore;create=true</value></property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value>{root}/warehouse</value></property>
</configuration>
"""


def free_port() -> int:
    """A loopback port that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spark_home() -> Path:
    """PySpark's own directory, which holds the whole of Spark.

    Raises:
        RuntimeError: PySpark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("PySpark is not installed")
    return Path(found.origin).parent


@contextmanager
def hive_metastore(root: Path) -> Iterator[str]:
    """A metastore service from PySpark's own jars; gives its thrift address.

    Embedded Derby admits one JVM; with the service in between several share one catalog.

    Raises:
        RuntimeError: it did not start in time.
    """
    port = free_port()
    conf = root / "conf"
    conf.mkdir(parents=True)
    (conf / "hive-site.xml").write_text(HIVE_SITE.format(root=root), encoding="utf-8")
    server = (
        *("-Xmx512m", "-cp", f"{conf}:{spark_home()}/jars/*"),
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
    )
    with _java(server, port, root / "metastore.log"):
        yield f"thrift://127.0.0.1:{port}"


@contextmanager
def iceberg_rest(jar: Path, root: Path) -> Iterator[str]:
    """Iceberg's own REST catalog server, over a SQLite file; gives its address.

    Args:
        jar: `tests.maven.ICEBERG_REST`.

    Raises:
        RuntimeError: it did not start in time.
    """
    root.mkdir(parents=True)
    port = free_port()
    # Its settings are variables: `__` stands for `-`, and `_` for `.`.
    settings = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{root / 'catalog.sqlite'}",
        # From this version on the catalog keeps views, and SQLite has one writer.
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_CLIENTS": "1",
        "CATALOG_WAREHOUSE": str(root / "lake"),
    }
    with _java(("-Xmx256m", "-jar", str(jar)), port, root / "rest.log", settings):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _java(
    arguments: Sequence[str], port: int, log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server in Java that listens on a port until the block ends, in the directory of its log."""
    environment = {**os.environ, **find_java_environment(os.environ, python=sys.executable)}
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    command = [java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *arguments]
    with serving(command, port, log, {**environment, **(variables or {})}):
        yield


@contextmanager
def serving(
    command: Sequence[str | Path], port: int, log: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """A server that listens on a loopback port until the block ends, in the directory of its log.

    Raises:
        RuntimeError: it did not start in time.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            wait_for_port(process, port, log)
            yield
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class Cluster:
    """A standalone cluster; `work` gets a directory for every application that ran there."""

    address: str
    work: Path


@contextmanager
def spark_cluster(
    root: Path,
    *,
    cores: int = 2,
    memory: str = "1g",
    master_on: NetworkMachine = LOOPBACK,
    worker_on: NetworkMachine = LOOPBACK,
) -> Iterator[Cluster]:
    """A Spark standalone cluster: a master, and one worker with this much to give.

    Raises:
        RuntimeError: it did not start in time.
    """
    root.mkdir(parents=True)
    port = free_port()
    address = f"spark://{master_on.address}:{port}"
    master = (
        "org.apache.spark.deploy.master.Master",
        *("--host", master_on.address, "--port", str(port), "--webui-port", "0"),
    )
    worker = (
        "org.apache.spark.deploy.worker.Worker",
        *("--host", worker_on.address, "--port", "0", "--webui-port", "0"),
        *("--cores", str(cores), "--memory", memory, "--work-dir", str(root / "work"), address),
    )
    with (
        _daemon(master, root / "master.log", master_on) as process,
        _daemon(worker, root / "worker.log", worker_on) as other,
    ):
        log = root / "worker.log"
        wait_until(
            lambda: "Successfully registered with master" in log.read_text(errors="replace"),
            (process, other),
            log,
        )
        yield Cluster(address, root / "work")


@contextmanager
def _daemon(
    arguments: tuple[str, ...], log: Path, machine: NetworkMachine
) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's own servers, with everything that it starts."""
    home = spark_home()
    environment = {
        **os.environ,
        **find_java_environment(os.environ, python=sys.executable),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": machine.address,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*machine.prefix, str(home / "bin" / "spark-class"), *arguments],
            cwd=log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            # Executors are in the worker's group.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Waits until a server listens on loopback; raises as `wait_until`."""

    def listens() -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, (process,), log)


def wait_until(
    ready: Callable[[], bool], processes: tuple[subprocess.Popen[bytes], ...], log: Path
) -> None:
    """Waits until servers that were just started are ready.

    Raises:
        RuntimeError: START_SECONDS are over, or one of them has ended; with the end of its log.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and all(process.poll() is None for process in processes):
        if ready():
            return
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")
