"""The cost of building models on Spark: estimated before, counted after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.cost import event_log_reads, event_logs, input_size_estimator
    from ci_bot.worker.cost.batch_meter import (
        BatchMeter,
        MeteredModel,
        make_clock_cost,
        make_counted_cost,
    )
    from ci_bot.worker.cost.input_size_estimator import PlanEstimator
    from ci_bot.worker.cost.known_costs import (
        add_reused_tables,
        collect_known_costs,
        describe_accuracy,
        read_accuracy,
    )
    from ci_bot.worker.cost.plan_estimate import (
        PlanProbe,
        add_unneeded_rebuilds,
        choose_probe,
        find_budget_failure,
        is_from_long_build,
        list_past_runs,
        predict_plan_cost,
        read_row_counts,
    )
    from ci_bot.worker.cost.spark_counters import SparkStore

__all__ = [
    "BatchMeter",
    "MeteredModel",
    "PlanEstimator",
    "PlanProbe",
    "SparkStore",
    "add_reused_tables",
    "add_unneeded_rebuilds",
    "choose_probe",
    "collect_known_costs",
    "describe_accuracy",
    "event_log_reads",
    "event_logs",
    "find_budget_failure",
    "input_size_estimator",
    "is_from_long_build",
    "list_past_runs",
    "make_clock_cost",
    "make_counted_cost",
    "predict_plan_cost",
    "read_accuracy",
    "read_row_counts",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "batch_meter": ["BatchMeter", "MeteredModel", "make_clock_cost", "make_counted_cost"],
        "event_logs": [],
        "event_log_reads": [],
        "input_size_estimator": ["PlanEstimator"],
        "known_costs": [
            "read_accuracy",
            "collect_known_costs",
            "describe_accuracy",
            "add_reused_tables",
        ],
        "plan_estimate": [
            "is_from_long_build",
            "predict_plan_cost",
            "find_budget_failure",
            "list_past_runs",
            "read_row_counts",
            "add_unneeded_rebuilds",
            "PlanProbe",
            "choose_probe",
        ],
        "spark_counters": ["SparkStore"],
    },
)
