"""Everything that reaches into SQLMesh's internals, for the versions that are supported.

Each function says which internal it leans on. tests/integration/test_compat.py runs each one
against the installed version, so that an upgrade that moves an internal fails there first.
"""

from __future__ import annotations

from ci_bot.worker.compat.bundled_bot import known_bot_settings, written_bot_settings
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
    rendered_environment_statements,
    rendered_statement,
    table_clauses,
)
from ci_bot.worker.compat.loading import (
    ignore_files,
    load_error,
    model_failures,
    registries_kept,
)
from ci_bot.worker.compat.macros import judge_macro_code
from ci_bot.worker.compat.planner import (
    AuditListener,
    AuditOutcome,
    LeasedPlanEvaluator,
    RecordingScheduler,
    expand_selection,
    first_restatements,
    inherits_intervals,
    keep_model_caps,
    note_refused_models,
    parse_selection,
    plan_builder,
    plan_evaluator,
    plan_models_to_backfill,
    previews_forward_only,
    prod_interval_ends,
    selector_of,
)
from ci_bot.worker.compat.same_place import as_if_in
from ci_bot.worker.compat.selection import select_by_changed_files
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
    full_snapshots,
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
    throwaway_state_again,
)
from ci_bot.worker.compat.throwaway_cache import spare_the_cache

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
    "as_if_in",
    "configured_catalog",
    "count_snapshots",
    "default_catalog",
    "delete_environment_record",
    "environment_snapshots",
    "executed_text",
    "executor_count",
    "expand_selection",
    "first_restatements",
    "forget_cached_snapshots",
    "forget_snapshots",
    "full_snapshots",
    "give_state",
    "has_lazy_spark",
    "ignore_files",
    "inherits_intervals",
    "judge_macro_code",
    "keep_model_caps",
    "known_bot_settings",
    "load_error",
    "lock_environments",
    "make_spark_lazy",
    "merge_nothing_from_state",
    "model_failures",
    "needs_format",
    "new_state_sync",
    "note_refused_models",
    "open_duckdb_read_only",
    "parse_selection",
    "plan_builder",
    "plan_evaluator",
    "plan_models_to_backfill",
    "prepare_configs",
    "previews_forward_only",
    "prod_interval_ends",
    "read_configs",
    "read_configs_without_state",
    "registries_kept",
    "rendered_environment_statements",
    "rendered_statement",
    "scan_packages_once",
    "select_by_changed_files",
    "selector_of",
    "set_known_catalog",
    "spare_the_cache",
    "state_adapter",
    "state_adapter_of",
    "state_connection",
    "state_is_shared",
    "state_sync_on",
    "stored_snapshots",
    "table_clauses",
    "throwaway_state",
    "throwaway_state_again",
    "written_bot_settings",
]
