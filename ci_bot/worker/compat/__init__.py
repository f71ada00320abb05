"""Everything that reaches into SQLMesh's internals, for the versions that are supported.

Each function says which internal it leans on. tests/integration/test_compat.py runs each one
against the installed version, so that an upgrade that moves an internal fails there first.
"""

from __future__ import annotations

from ci_bot.worker.compat.configuration import (
    analytics_off,
    default_catalog,
    merge_nothing_from_state,
    needs_format,
    prepare_configs,
    read_configs,
    read_configs_without_state,
    scan_packages_once,
    state_is_shared,
)
from ci_bot.worker.compat.engine import (
    executed_text,
    rendered_around,
    rendered_statement,
    table_clauses,
)
from ci_bot.worker.compat.planner import (
    AuditListener,
    AuditOutcome,
    LeasedPlanEvaluator,
    RecordingScheduler,
    keep_model_caps,
    note_refused_models,
    plan_evaluator,
    plan_models_to_backfill,
    prod_interval_ends,
)
from ci_bot.worker.compat.spark import (
    LazySparkConnectionConfig,
    ListingSparkAdapter,
    configured_catalog,
    executor_count,
    has_lazy_spark,
    make_spark_lazy,
    set_known_catalog,
)
from ci_bot.worker.compat.states import (
    StoredSnapshot,
    count_snapshots,
    delete_environment_record,
    environment_snapshots,
    forget_cached_snapshots,
    forget_snapshots,
    give_state,
    lock_environments,
    new_state_sync,
    open_duckdb_read_only,
    state_adapter,
    state_adapter_of,
    state_connection,
    state_sync_on,
    stored_snapshots,
    throwaway_state,
    whole_snapshots,
)

SUPPORTED = ("0.236",)

__all__ = [
    "SUPPORTED",
    "AuditListener",
    "AuditOutcome",
    "LazySparkConnectionConfig",
    "LeasedPlanEvaluator",
    "ListingSparkAdapter",
    "RecordingScheduler",
    "StoredSnapshot",
    "analytics_off",
    "configured_catalog",
    "count_snapshots",
    "default_catalog",
    "delete_environment_record",
    "environment_snapshots",
    "executed_text",
    "executor_count",
    "forget_cached_snapshots",
    "forget_snapshots",
    "give_state",
    "has_lazy_spark",
    "keep_model_caps",
    "lock_environments",
    "make_spark_lazy",
    "merge_nothing_from_state",
    "needs_format",
    "new_state_sync",
    "note_refused_models",
    "open_duckdb_read_only",
    "plan_evaluator",
    "plan_models_to_backfill",
    "prepare_configs",
    "prod_interval_ends",
    "read_configs",
    "read_configs_without_state",
    "rendered_around",
    "rendered_statement",
    "scan_packages_once",
    "set_known_catalog",
    "state_adapter",
    "state_adapter_of",
    "state_connection",
    "state_is_shared",
    "state_sync_on",
    "stored_snapshots",
    "table_clauses",
    "throwaway_state",
    "whole_snapshots",
]
