"""What building models costs on Spark: counted after, estimated before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.cost import event_log_activity, input_size_estimator
    from ci_bot.worker.cost.batch_meter import Meter, Metered, clock_cost, counted_cost
    from ci_bot.worker.cost.input_size_estimator import Estimator
    from ci_bot.worker.cost.known_costs import known_accuracy, known_of, sentence_of, with_reused
    from ci_bot.worker.cost.plan_estimate import (
        builds_long,
        estimate,
        over_budget,
        past_of,
        row_counts,
        with_unneeded,
    )
    from ci_bot.worker.cost.probe_selection import Probe, choose
    from ci_bot.worker.cost.spark_counters import SparkStore

__all__ = [
    "Estimator",
    "Meter",
    "Metered",
    "Probe",
    "SparkStore",
    "builds_long",
    "choose",
    "clock_cost",
    "counted_cost",
    "estimate",
    "event_log_activity",
    "input_size_estimator",
    "known_accuracy",
    "known_of",
    "over_budget",
    "past_of",
    "row_counts",
    "sentence_of",
    "with_reused",
    "with_unneeded",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "batch_meter": ["Meter", "Metered", "clock_cost", "counted_cost"],
        "event_log_activity": [],
        "input_size_estimator": ["Estimator"],
        "known_costs": ["known_accuracy", "known_of", "sentence_of", "with_reused"],
        "plan_estimate": [
            "builds_long",
            "estimate",
            "over_budget",
            "past_of",
            "row_counts",
            "with_unneeded",
        ],
        "probe_selection": ["Probe", "choose"],
        "spark_counters": ["SparkStore"],
    },
)
