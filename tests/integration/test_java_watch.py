"""A JVM that dies while it starts a process leaves one that keeps its connections open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ci_bot.worker.messages.problems import SPARK_IS_GONE
from tests.conftest import REPOSITORY

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

# A program that a JVM starts has no sockets of its parent's; what helps to start it has, for a
# moment. So this one is given the descriptor of each, as it is at that moment.
PROGRAM = """
import os, signal, subprocess, sys, threading, time
from ci_bot.worker.runtime import java
os.environ.update(java.find_java_environment(os.environ, python=sys.executable))
from pyspark.sql import SparkSession
from ci_bot.worker.runtime.java_process import WATCH
from ci_bot.worker.messages.problems import extract_sentence_of_error
if sys.argv[1] == "watched":
    WATCH.start_watching()
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
jvm = spark.sparkContext._gateway.proc.pid
held = subprocess.Popen(
    [sys.executable, "-c", "import sys, tests.integration.test_java_watch as t; t.hold(sys.argv[1])",
     str(jvm)],
    env=dict(item.split("=", 1) for item in open(f"/proc/{jvm}/environ").read().split(chr(0)) if "=" in item),
    stdout=subprocess.PIPE,
)
assert held.stdout.readline() == b"holds\\n"
threading.Timer(1.0, lambda: os.kill(jvm, signal.SIGKILL)).start()
print("asks", flush=True)
try:
    spark._jvm.java.lang.Thread.sleep(600000)
except Exception as error:
    print("ended:", extract_sentence_of_error(error), flush=True)
finally:
    held.kill()
os._exit(0)
"""


def hold(jvm: str) -> None:
    """Keeps a copy of every socket of a process open, as its half-started child does."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.pidfd_open(int(jvm))
    copies = []
    for entry in Path(f"/proc/{jvm}/fd").iterdir():
        with suppress(OSError):
            if str(entry.readlink()).startswith("socket:"):
                copies.append(libc.syscall(PIDFD_GETFD, handle, int(entry.name), 0))
    assert copies, "a JVM has a socket to its Python"
    assert min(copies) >= 0, os.strerror(ctypes.get_errno())
    os.close(handle)
    print("holds", flush=True)
    time.sleep(600)


PIDFD_GETFD = 438
PATIENCE = 20.0


def ask(how: str) -> str | None:
    """What the program says after its JVM was killed; None where it waits on."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        while (line := process.stdout.readline()) and line != "asks\n":
            pass
        assert line == "asks\n"
        return process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.night
def test_python__whose_jvm_dies_and_leaves_a_process__is_told(java: None) -> None:
    assert ask("alone") is None, "without the watch it waits for ever: else this tests nothing"

    # Which error Python gets depends on whether it asks for another connection before it looks.
    assert (ask("watched") or "").startswith(f"ended: {SPARK_IS_GONE}")
