"""What building models costs on Spark: counted after, estimated before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.cost import event_log_activity, input_size_estimator
    from ci_bot.worker.cost.batch_meter import BatchMeter, MeteredModel, clock_cost, counted_cost
    from ci_bot.worker.cost.input_size_estimator import PlanEstimator
    from ci_bot.worker.cost.known_costs import known_accuracy, known_of, sentence_of, with_reused
    from ci_bot.worker.cost.plan_estimate import (
        builds_long,
        over_budget,
        past_of,
        predict_plan_cost,
        row_counts,
        with_unneeded,
    )
    from ci_bot.worker.cost.probe_selection import PlanProbe, choose_probe
    from ci_bot.worker.cost.spark_counters import SparkStore

__all__ = [
    "BatchMeter",
    "MeteredModel",
    "PlanEstimator",
    "PlanProbe",
    "SparkStore",
    "builds_long",
    "choose_probe",
    "clock_cost",
    "counted_cost",
    "event_log_activity",
    "input_size_estimator",
    "known_accuracy",
    "known_of",
    "over_budget",
    "past_of",
    "predict_plan_cost",
    "row_counts",
    "sentence_of",
    "with_reused",
    "with_unneeded",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "batch_meter": ["BatchMeter", "MeteredModel", "clock_cost", "counted_cost"],
        "event_log_activity": [],
        "input_size_estimator": ["PlanEstimator"],
        "known_costs": ["known_accuracy", "known_of", "sentence_of", "with_reused"],
        "plan_estimate": [
            "builds_long",
            "predict_plan_cost",
            "over_budget",
            "past_of",
            "row_counts",
            "with_unneeded",
        ],
        "probe_selection": ["PlanProbe", "choose_probe"],
        "spark_counters": ["SparkStore"],
    },
)
