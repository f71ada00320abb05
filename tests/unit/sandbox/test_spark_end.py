"""Spark ends beside the rest of the work, and its JVM only after it."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from ci_bot.worker.runtime.process import EndOfWorkerSpark


class Spark:
    """A SparkContext that stops once it is let, and what happened to it and its JVM."""

    def __init__(self, *, fails: bool = False) -> None:
        self.happened: list[str] = []
        self.let = threading.Event()
        self._fails = fails
        process = SimpleNamespace(
            kill=lambda: self.happened.append("killed"), wait=lambda: self.happened.append("gone")
        )
        self._gateway = SimpleNamespace(proc=process)

    def stop(self) -> None:
        self.let.wait(10)
        if self._fails:
            raise RuntimeError("the cluster is gone")
        self.happened.append("stopped")


def test_begin__does_not_wait_for_spark() -> None:
    spark = Spark()
    end = EndOfWorkerSpark(lambda: spark)
    end.begin_end()
    assert spark.happened == []
    spark.let.set()
    end.finish_end()
    assert spark.happened == ["stopped", "killed", "gone"]


def test_finish__leaves_a_spark_that_does_not_stop_to_the_cage() -> None:
    spark = Spark()
    end = EndOfWorkerSpark(lambda: spark, patience=0.01)
    end.begin_end()
    end.finish_end()
    assert spark.happened == []
    spark.let.set()


def test_finish__ends_the_jvm_of_a_spark_that_fails_to_stop() -> None:
    spark = Spark(fails=True)
    spark.let.set()
    end = EndOfWorkerSpark(lambda: spark)
    end.begin_end()
    end.finish_end()
    assert spark.happened == ["killed", "gone"]


def test_finish__touches_no_spark_that_was_not_told_to_end() -> None:
    spark = Spark()
    spark.let.set()
    EndOfWorkerSpark(lambda: spark).finish_end()
    assert spark.happened == []


def test_end__of_a_process_without_spark_is_nothing() -> None:
    end = EndOfWorkerSpark(lambda: None)
    end.begin_end()
    end.finish_end()


def test_end__of_a_jvm_that_somebody_else_has_started_is_theirs() -> None:
    spark = Spark()
    spark._gateway = SimpleNamespace(proc=None)
    spark.let.set()
    end = EndOfWorkerSpark(lambda: spark)
    end.begin_end()
    end.finish_end()
    assert spark.happened == ["stopped"]
