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
    from ci_bot.worker.cost.input_size_estimator import PlanCostEstimator
    from ci_bot.worker.cost.known_costs import (
        add_reused_tables_to_cost,
        collect_known_costs,
        describe_accuracy_of_costs,
        read_accuracy_of_costs,
    )
    from ci_bot.worker.cost.plan_estimate import (
        CostProbe,
        add_unneeded_rebuilds_to_cost,
        choose_cost_probe,
        find_cost_budget_failure,
        is_cost_from_long_build,
        list_past_runs_for_cost,
        predict_plan_cost,
        read_row_counts_for_cost,
    )
    from ci_bot.worker.cost.spark_counters import SparkCostCounterStore

__getattr__ = open_on_demand(
    __name__,
    {
        "batch_meter": ["BatchMeter", "MeteredModel", "make_clock_cost", "make_counted_cost"],
        "event_logs": [],
        "event_log_reads": [],
        "input_size_estimator": ["PlanCostEstimator"],
        "known_costs": [
            "read_accuracy_of_costs",
            "collect_known_costs",
            "describe_accuracy_of_costs",
            "add_reused_tables_to_cost",
        ],
        "plan_estimate": [
            "is_cost_from_long_build",
            "predict_plan_cost",
            "find_cost_budget_failure",
            "list_past_runs_for_cost",
            "read_row_counts_for_cost",
            "add_unneeded_rebuilds_to_cost",
            "CostProbe",
            "choose_cost_probe",
        ],
        "spark_counters": ["SparkCostCounterStore"],
    },
)
