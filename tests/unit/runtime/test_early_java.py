"""A JVM that is started on a guess is used only where the guess was right."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_bot.worker.runtime.java_process import HIVE, EarlyJava, guess_spark_options_for_java
from ci_bot.yaml_reader import read_yaml_or_none

CONFIG = """\
gateways:
  small:
    connection:
      type: duckdb
  spark:
    connection:
      type: spark
      config:
        spark.master: local[2]
        spark.ui.enabled: false
        spark.default.parallelism: 3
    state_connection:
      type: postgres
      password: "{{ env_var('STATE_PASSWORD') }}"
default_gateway: spark
"""
OPTIONS = {"spark.master": "local[2]", **HIVE}
ENVIRONMENT = {"JAVA_HOME": "/java"}


class Options:
    """What PySpark hands to the start of a JVM."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - PySpark's name
        return list(self._options.items())


class Process:
    def __init__(self) -> None:
        self.ended = threading.Event()

    def kill(self) -> None:
        self.ended.set()

    def wait(self) -> None:
        return


class Gateway:
    def __init__(self) -> None:
        self.proc = Process()


class Java:
    """Starts JVMs, and keeps what was asked for; the first `failures` starts fail."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[dict[str, str]] = []
        self.made: list[Gateway] = []
        self.answered = threading.Event()
        self._failures = failures

    def early(self, environment: Mapping[str, str] = ENVIRONMENT) -> EarlyJava:
        """A guess whose start has ended, so that what is asked for next comes second."""
        early = EarlyJava(OPTIONS, self.launch, environment)
        assert self.answered.wait(10)
        return early

    def launch(self, conf: Any) -> Gateway:
        self.asked.append(dict(conf.getAll()))
        try:
            if len(self.asked) <= self._failures:
                raise RuntimeError("no JVM")
            self.made.append(Gateway())
            return self.made[-1]
        finally:
            self.answered.set()


def project(tmp_path: Path, text: str = CONFIG, name: str = "config.yaml") -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_guessed__default_gateway_in_plain_text(tmp_path: Path) -> None:
    assert guess_spark_options_for_java(project(tmp_path), None, read_yaml_or_none) == {
        "spark.master": "local[2]",
        "spark.ui.enabled": "False",
        "spark.default.parallelism": "3",
        "spark.sql.catalogImplementation": "hive",
    }


def test_guessed__no_default_is_the_first_gateway(tmp_path: Path) -> None:
    text = CONFIG.replace("default_gateway: spark\n", "")
    assert guess_spark_options_for_java(project(tmp_path, text), None, read_yaml_or_none) is None
    assert guess_spark_options_for_java(tmp_path, "spark", read_yaml_or_none) is not None


@pytest.mark.parametrize(
    ("text", "gateway"),
    [
        (CONFIG, "small"),
        (CONFIG, "unknown"),
        (CONFIG.replace("local[2]", "\"{{ env_var('MASTER') }}\""), None),
        (CONFIG.replace("gateways:", "{% if true %}\n{% endif %}\ngateways:"), None),
        (CONFIG.replace("type: spark", "type: spark\n      config_dir: /etc/spark"), None),
        (CONFIG.replace("gateways:", "gateways: ["), None),
        ("- a list", None),
        ("gateways: spark", None),
        ("", None),
    ],
)
def test_guessed__nothing_where_it_does_not_stand_there(
    tmp_path: Path, text: str, gateway: str | None
) -> None:
    assert guess_spark_options_for_java(project(tmp_path, text), gateway, read_yaml_or_none) is None


@pytest.mark.parametrize("beside", ["config.py", ".env", "config.yml"])
def test_guessed__nothing_where_another_file_has_a_say(tmp_path: Path, beside: str) -> None:
    project(tmp_path)
    assert guess_spark_options_for_java(tmp_path, None, read_yaml_or_none) is not None
    (tmp_path / beside).write_text("", encoding="utf-8")
    assert guess_spark_options_for_java(tmp_path, None, read_yaml_or_none) is None


def test_launch__right_guess_starts_one_jvm() -> None:
    java = Java()
    early = java.early()
    assert early.launch_java(Options(dict(reversed(OPTIONS.items())))) is java.made[0]
    assert java.asked == [OPTIONS]
    assert not java.made[0].proc.ended.is_set()


@pytest.mark.parametrize(
    "wanted", [OPTIONS | {"spark.master": "yarn"}, OPTIONS | {"spark.app.name": "shop"}, HIVE]
)
def test_launch__other_options_start_another_jvm(wanted: dict[str, str]) -> None:
    java = Java()
    early = java.early()
    _another(java, lambda: early.launch_java(Options(wanted)))
    assert java.asked == [OPTIONS, wanted]


def test_launch__another_environment_starts_another_jvm() -> None:
    java, environment = Java(), dict(ENVIRONMENT)
    early = java.early(environment)
    environment["AWS_PROFILE"] = "prod"
    _another(java, lambda: early.launch_java(Options(OPTIONS)))


def test_launch__guess_that_failed_is_asked_for_in_earnest() -> None:
    java = Java(failures=1)
    early = java.early()
    assert early.launch_java(Options(OPTIONS)) is java.made[0]
    java = Java(failures=2)
    early = java.early()
    with pytest.raises(RuntimeError, match="no JVM"):
        early.launch_java(Options(OPTIONS))


def test_launch__second_session_gets_a_jvm_of_its_own() -> None:
    java = Java()
    early = java.early()
    assert early.launch_java(Options(OPTIONS)) is not early.launch_java(Options(OPTIONS))


def _another(java: Java, launch: Callable[[], Any]) -> None:
    """The guess is ended, and what is given is another one."""
    given = launch()
    first, other = java.made
    assert given is other
    assert first.proc.ended.wait(10)
    assert not other.proc.ended.is_set()
