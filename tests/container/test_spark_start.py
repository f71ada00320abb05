"""Spark in the image starts from its class-data archive, and starts all the same without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .engine import Engine

SCRIPT = Path(__file__).with_name("spark_start.py")
PYTHON = "/opt/ci-bot/bin/python"
# As the worker: its own account, no home but /tmp.
AS_WORKER = ("--user", "10001:10001", "--workdir", "/tmp", "--env", "HOME=/tmp")

pytestmark = [pytest.mark.slow, pytest.mark.spark]


def start_spark(engine: Engine, image: str, *settings: str, options: tuple[str, ...] = ()) -> Any:
    """One cold start; the script's answer and everything else that was printed."""
    done = engine.run(
        image,
        "/spark_start.py",
        *settings,
        options=(
            *AS_WORKER, "--entrypoint", PYTHON, "--volume", f"{SCRIPT}:/spark_start.py:ro", *options
        ),
        timeout=300,
    )  # fmt: skip
    *noise, answer = done.stdout.strip().splitlines()
    return json.loads(answer), "\n".join(noise) + done.stderr


@pytest.mark.night
def test_spark_start__the_archive_saves_a_third_of_the_processor_time(
    engine: Engine, image: str, record_property: Callable[[str, object], None]
) -> None:
    with_archive, _ = start_spark(engine, image)
    # Without SPARK_HOME/conf there is no word of the archive.
    without, _ = start_spark(engine, image, options=("--env", "SPARK_CONF_DIR=/nonexistent"))
    for name, figures in (("with", with_archive), ("without", without)):
        print(f"Spark cold start {name} archive: {json.dumps(figures)}")
        record_property(f"spark_cold_start_{name}_archive", figures["seconds"])
    assert with_archive["rows"] == without["rows"] == [{"one": 1}]
    assert with_archive["archive_mapped"]
    assert not without["archive_mapped"]
    assert with_archive["jvm_cpu_seconds"] <= 0.67 * without["jvm_cpu_seconds"]


@pytest.mark.night
def test_spark_start__a_class_path_of_the_projects_own_is_slower_but_silent(
    engine: Engine, image: str
) -> None:
    answer, noise = start_spark(engine, image, "spark.driver.extraClassPath=/own.jar")
    assert answer["rows"] == [{"one": 1}]
    assert not answer["archive_mapped"]
    assert "shared class paths mismatch" not in noise
    assert "[cds]" not in noise


@pytest.mark.night
def test_spark_start__own_java_options_keep_the_archive(engine: Engine, image: str) -> None:
    answer, _ = start_spark(engine, image, "spark.driver.extraJavaOptions=-Down=1 -Xss2m")
    assert answer["archive_mapped"]
