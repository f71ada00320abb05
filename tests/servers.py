"""Servers that tests start and stop themselves: a Hive metastore service."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_bot.worker.java import java_environment

START_SECONDS = 90.0

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
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("PySpark is not installed")
    jars = Path(found.origin).parent / "jars"
    environment = {**os.environ, **java_environment(os.environ, python=sys.executable)}
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    with (root / "metastore.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{conf}:{jars}/*"),
                *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
            ],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            _wait(process, port, root / "metastore.log")
            yield f"thrift://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the metastore did not start:\n{log.read_text(errors='replace')[-2000:]}")
