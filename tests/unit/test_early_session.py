"""A session that is started on a guess is used only if the guess was right, and ends if not."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from ci_bot.worker.runtime.early_session import EarlySession, Surroundings
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
        self.ended: list[Any] = []
        self.is_warm = threading.Event()

    def start_early(self) -> EarlySession:
        return EarlySession(
            OPTIONS,
            self.start,
            warm_up=self.warm_up,
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
    assert spark.ended == []


@pytest.mark.parametrize(
    "wanted", [OPTIONS | {"spark.master": "local[3]"}, OPTIONS | {"spark.app.name": "shop"}, HIVE]
)
def test_claim__other_options_end_the_session(wanted: dict[str, str]) -> None:
    spark = Spark()
    assert spark.start_early().claim_session(wanted) is None
    assert spark.ended == [spark.session]


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
