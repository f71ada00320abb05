"""A session that is started on a guess is used only if the guess was right, and ends if not."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ci_bot.worker.runtime.early_session import EarlySession, Surroundings, is_spark_start_reported
from ci_bot.worker.runtime.java_process import HIVE

OPTIONS = {"spark.master": "local[2]", **HIVE}
SURROUNDINGS: Surroundings = ({"JAVA_HOME": "/java"}, "/project")


class Spark:
    """Starts one session, and keeps what was done with it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.session = object()
        self.surroundings = SURROUNDINGS
        self.warmed: list[Any] = []
        self.adopted: list[tuple[Any, int]] = []
        self.ended: list[Any] = []
        self.is_warm = threading.Event()

    def start_early(self) -> EarlySession:
        return EarlySession(
            OPTIONS,
            self.start,
            warm_up=self.warm_up,
            adopt=lambda session: self.adopted.append((session, threading.get_ident())),
            end=self.ended.append,
            read=lambda: self.surroundings,
        )

    def start(self, options: Mapping[str, str]) -> Any:
        assert options == OPTIONS
        if self.error is not None:
            raise self.error
        return self.session

    def warm_up(self, session: Any) -> None:
        self.warmed.append(session)
        self.is_warm.set()
        raise RuntimeError("Spark has ended meanwhile")


def test_claim__right_guess_is_the_session() -> None:
    spark = Spark()
    early = spark.start_early()
    assert early.claim_session(dict(reversed(OPTIONS.items()))) is spark.session
    assert early.is_started
    assert spark.is_warm.wait(10)
    assert spark.warmed == [spark.session]
    assert spark.adopted == [(spark.session, threading.get_ident())]
    assert spark.ended == []


@pytest.mark.parametrize(
    "wanted", [OPTIONS | {"spark.master": "local[3]"}, OPTIONS | {"spark.app.name": "shop"}, HIVE]
)
def test_claim__other_options_end_the_session(wanted: dict[str, str]) -> None:
    spark = Spark()
    assert spark.start_early().claim_session(wanted) is None
    assert spark.ended == [spark.session]
    assert spark.adopted == []


@pytest.mark.parametrize(
    "now",
    [({"JAVA_HOME": "/java", "AWS_PROFILE": "prod"}, "/project"), (SURROUNDINGS[0], "/elsewhere")],
)
def test_claim__other_surroundings_end_the_session(now: Surroundings) -> None:
    spark = Spark()
    early = spark.start_early()
    spark.surroundings = now
    assert early.claim_session(OPTIONS) is None
    assert spark.ended == [spark.session]


def test_claim__session_that_did_not_start_leaves_no_jvm() -> None:
    spark = Spark(error=RuntimeError("no port"))
    early = spark.start_early()
    assert early.claim_session(OPTIONS) is None
    assert not early.is_started
    assert spark.ended == [None]
    assert spark.warmed == []


REPORTING = "spark.eventLog.enabled"


@pytest.mark.parametrize(
    ("options", "environ", "is_reported"),
    [
        ({}, {}, False),
        ({"spark.plugins": "org.example.Plugin"}, {}, True),
        ({"spark.driver.extraJavaOptions": f"-D{REPORTING}=true"}, {}, True),
        ({}, {"SPARK_SUBMIT_OPTS": f"-Xss4m -D{REPORTING}=true"}, True),
        ({}, {"SPARK_SUBMIT_OPTS": "-Xss4m"}, False),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--properties-file team.conf pyspark-shell"}, True),
    ],
)
def test_start__may_be_reported_by_options_and_environment(
    tmp_path: Path, options: dict[str, str], environ: dict[str, str], is_reported: bool
) -> None:
    environ = {"SPARK_HOME": str(tmp_path), **environ}
    assert is_spark_start_reported(OPTIONS | options, environ) is is_reported


@pytest.mark.parametrize(
    ("line", "is_reported"), [(f"{REPORTING} true", True), ("spark.ui.enabled false", False)]
)
@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR"])
def test_start__may_be_reported_by_the_defaults(
    tmp_path: Path, line: str, is_reported: bool, variable: str
) -> None:
    file = tmp_path / ("conf" if variable == "SPARK_HOME" else "") / "spark-defaults.conf"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{line}\n", "utf-8")
    assert is_spark_start_reported(OPTIONS, {variable: str(tmp_path)}) is is_reported
