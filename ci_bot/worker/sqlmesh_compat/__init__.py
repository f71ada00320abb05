"""Everything that reaches into SQLMesh's internals, for the versions that are supported.

Each function says which internal it leans on. tests/integration/test_compat.py runs each one
against the installed version, so that an upgrade that moves an internal fails there first.
"""

from __future__ import annotations

from ci_bot.worker.sqlmesh_compat.base_cache_read import known_loaded
from ci_bot.worker.sqlmesh_compat.base_cache_write import (Noted, known_files_of, noted)
from ci_bot.worker.sqlmesh_compat.configuration import (DbtProjectError, analytics_off, default_catalog, find_engines_unimported, is_dbt_project, known_bot_settings, merge_nothing_from_state, needs_format, prepare_configs, read_configs, read_configs_without_state, scan_packages_once, state_is_shared, written_bot_settings)
from ci_bot.worker.sqlmesh_compat.configuration import (executed_text, rendered_environment_statements, rendered_statement, table_clauses)
from ci_bot.worker.sqlmesh_compat.evaluator import (AroundBatch, AuditListener, AuditOutcome, AuditQuestion, LeasedPlanEvaluator, PartOfPlan, RecordingScheduler, failed_audit_of, plan_evaluator)
from ci_bot.worker.sqlmesh_compat.loading import (ignore_files, load_error, loaded_tests, model_failures, order_models, registries_kept)
from ci_bot.worker.sqlmesh_compat.macro_code import judge_macro_code
from ci_bot.worker.sqlmesh_compat.loading import (FailingNode, failing_nodes_of_others)
from ci_bot.worker.sqlmesh_compat.planner import (RefusedChange, expand_selection, first_restatements, give_last_intervals, inherits_intervals, keep_model_caps, note_refused_changes, parse_selection, plan_builder, plan_models_to_backfill, previews_forward_only, prod_interval_ends, selector_of)
from ci_bot.worker.sqlmesh_compat.states import as_if_in
from ci_bot.worker.sqlmesh_compat.planner import select_by_changed_files
from ci_bot.worker.sqlmesh_compat.reuse_prod_snapshots import as_in_prod
from ci_bot.worker.sqlmesh_compat.plan_building import build
from ci_bot.worker.sqlmesh_compat.cache_writes import spare_the_cache
from ci_bot.worker.sqlmesh_compat.cache_writes import types_read_once
from ci_bot.worker.sqlmesh_compat.spark import (LazySparkConnectionConfig, ListingSparkAdapter, announce_tests_on_spark, configured_catalog, executor_count, has_lazy_spark, make_spark_lazy, runs_a_job, set_known_catalog, spark_settings)
from ci_bot.worker.sqlmesh_compat.states import (StoredSnapshot, count_snapshots, delete_environment_record, environment_snapshots, forget_cached_snapshots, forget_snapshots, full_snapshots, give_state, lock_environments, mark_environment_unfinished, new_state_sync, open_duckdb_read_only, read_only_transactions, state_adapter, state_adapter_of, state_connection, state_sync_on, stored_snapshots, throwaway_state, throwaway_state_again)

__all__ = [
    "AroundBatch",
    "AuditListener",
    "AuditOutcome",
    "AuditQuestion",
    "DbtProjectError",
    "FailingNode",
    "LazySparkConnectionConfig",
    "LeasedPlanEvaluator",
    "ListingSparkAdapter",
    "Noted",
    "PartOfPlan",
    "RecordingScheduler",
    "RefusedChange",
    "StoredSnapshot",
    "analytics_off",
    "announce_tests_on_spark",
    "as_if_in",
    "as_in_prod",
    "build",
    "configured_catalog",
    "count_snapshots",
    "default_catalog",
    "delete_environment_record",
    "environment_snapshots",
    "executed_text",
    "executor_count",
    "expand_selection",
    "failed_audit_of",
    "failing_nodes_of_others",
    "find_engines_unimported",
    "first_restatements",
    "forget_cached_snapshots",
    "forget_snapshots",
    "full_snapshots",
    "give_last_intervals",
    "give_state",
    "has_lazy_spark",
    "ignore_files",
    "inherits_intervals",
    "is_dbt_project",
    "judge_macro_code",
    "keep_model_caps",
    "known_bot_settings",
    "known_files_of",
    "known_loaded",
    "load_error",
    "loaded_tests",
    "lock_environments",
    "make_spark_lazy",
    "mark_environment_unfinished",
    "merge_nothing_from_state",
    "model_failures",
    "needs_format",
    "new_state_sync",
    "note_refused_changes",
    "noted",
    "open_duckdb_read_only",
    "order_models",
    "parse_selection",
    "plan_builder",
    "plan_evaluator",
    "plan_models_to_backfill",
    "prepare_configs",
    "previews_forward_only",
    "prod_interval_ends",
    "read_configs",
    "read_configs_without_state",
    "read_only_transactions",
    "registries_kept",
    "rendered_environment_statements",
    "rendered_statement",
    "runs_a_job",
    "scan_packages_once",
    "select_by_changed_files",
    "selector_of",
    "set_known_catalog",
    "spare_the_cache",
    "spark_settings",
    "state_adapter",
    "state_adapter_of",
    "state_connection",
    "state_is_shared",
    "state_sync_on",
    "stored_snapshots",
    "table_clauses",
    "throwaway_state",
    "throwaway_state_again",
    "types_read_once",
    "written_bot_settings",
]
