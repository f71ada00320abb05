"""What the image for reviews cannot do: it has neither Java nor Spark."""

from __future__ import annotations

from ci_bot.bot.trigger import job
from ci_bot.contracts.versions.pyspark import WITH_SPARK
from ci_bot.errors import BadInput

# Each of them asks Spark, builds with it or removes with it. A review may have to, too, for a
# project's unit tests; only the worker knows.
_ON_SPARK = {
    job.Apply: "An apply",
    job.Estimate: "An estimate",
    job.Cleanup: "A cleanup",
    job.Sweep: "A sweep",
}


def check(activity: job.Activity, *, has_spark: bool) -> None:
    """Whether this image can do what was asked for.

    Raises:
        BadInput: it needs Spark, and there is none.
    """
    name = _ON_SPARK.get(type(activity))
    if name and not has_spark:
        raise BadInput(
            f"{name} needs Spark, and the image for reviews has none.",
            hint=WITH_SPARK,
            reason_code="no_spark",
        )
