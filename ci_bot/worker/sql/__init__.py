"""The meaning of queries: names, scopes, columns and keys, equal results, and reached columns.

It shows whether two queries give the same rows, and which columns of later models a change reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.sql import column_changes
    from ci_bot.worker.sql.audit_promises import (
        AuditPromises,
        Strictness,
        are_same_arguments,
        bind_audit_arguments,
        compare_audit_arguments,
        compare_audit_queries,
        list_column_names,
        read_audit_promises,
    )
    from ci_bot.worker.sql.column_changes import (
        TIMESTAMPS,
        compare_types,
        list_column_changes,
        list_known_types,
    )
    from ci_bot.worker.sql.column_references import (
        AuditFault,
        ClauseKey,
        describe_moved_positions,
        list_audit_faults,
        list_clause_keys,
        list_missing_columns,
        list_standalone_audit_faults,
        pair_clause_queries,
        render_expression_text,
    )
    from ci_bot.worker.sql.equivalence.blocks import KeyInterner, TermKey
    from ci_bot.worker.sql.equivalence.proof import (
        WHOLE,
        JoinMeaning,
        NormalForm,
        QueryMeaning,
        normalize_query,
        strip_quotes,
    )
    from ci_bot.worker.sql.interval_filters import (
        find_interval_bounds,
        is_interval_predicate,
        list_last_days,
        mentions_interval,
        read_day_macro,
    )
    from ci_bot.worker.sql.joins import ScopedJoin, split_conditions
    from ci_bot.worker.sql.lineage.document import MOST_INDIRECT, make_impact
    from ci_bot.worker.sql.lineage.sources import (
        ChangedProject,
        LineageModel,
        ModelChange,
        ModelDefinition,
    )
    from ci_bot.worker.sql.model_code import (
        JINJA_PARSER,
        RUN_DATES,
        find_clock_calls_in,
        find_environment_reads,
        find_random_calls_in,
        find_side_effects,
        is_pure_macro,
        is_signal_always_ready,
        is_too_deep,
        iterate_code_trees,
        list_jinja_macros,
        list_unused_edges,
        map_stored_code_of_model,
        parse_python,
        reads_argument,
    )
    from ci_bot.worker.sql.model_query import (
        EPOCH,
        SENTINEL_END,
        SENTINEL_NOW,
        SENTINEL_START,
        ExpressionTree,
        ModelQueries,
        ModelQuery,
        inline_model_queries,
        list_key_columns,
        name_query_part,
        plain_name,
        replace_tables_by_queries,
    )
    from ci_bot.worker.sql.nullability import (
        NEVER,
        UNKNOWN,
        find_missing_value_reason,
        find_null_default,
        find_null_reason,
        find_value_null_reason,
        list_filled_columns,
    )
    from ci_bot.worker.sql.selects import (
        ScopedQuery,
        ScopedSelect,
        SelectSource,
        read_selects,
        table_name,
    )
    from ci_bot.worker.sql.spark_sql import (
        enter_casts,
        enter_expression,
        find_only_frame,
        is_spark_dialect,
        read_as_spark,
        spell_frame,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "equivalence.blocks": ["KeyInterner", "TermKey"],
        "audit_promises": [
            "AuditPromises",
            "Strictness",
            "bind_audit_arguments",
            "list_column_names",
            "compare_audit_arguments",
            "compare_audit_queries",
            "read_audit_promises",
            "are_same_arguments",
        ],
        "column_changes": [
            "TIMESTAMPS",
            "list_known_types",
            "list_column_changes",
            "compare_types",
        ],
        "equivalence.proof": [
            "NormalForm",
            "JoinMeaning",
            "QueryMeaning",
            "WHOLE",
            "normalize_query",
            "strip_quotes",
        ],
        "interval_filters": [
            "find_interval_bounds",
            "read_day_macro",
            "is_interval_predicate",
            "list_last_days",
            "mentions_interval",
        ],
        "lineage.document": ["MOST_INDIRECT", "make_impact"],
        "lineage.sources": ["ChangedProject", "ModelDefinition", "LineageModel", "ModelChange"],
        "column_references": [
            "AuditFault",
            "list_audit_faults",
            "list_standalone_audit_faults",
            "ClauseKey",
            "describe_moved_positions",
            "render_expression_text",
            "pair_clause_queries",
            "list_clause_keys",
            "list_missing_columns",
        ],
        "model_query": [
            "EPOCH",
            "list_key_columns",
            "SENTINEL_END",
            "SENTINEL_NOW",
            "SENTINEL_START",
            "ModelQueries",
            "ModelQuery",
            "ExpressionTree",
            "name_query_part",
            "plain_name",
            "replace_tables_by_queries",
            "inline_model_queries",
        ],
        "nullability": [
            "NEVER",
            "UNKNOWN",
            "find_null_default",
            "find_null_reason",
            "find_missing_value_reason",
            "find_value_null_reason",
            "list_filled_columns",
        ],
        "selects": [
            "ScopedQuery",
            "ScopedSelect",
            "SelectSource",
            "read_selects",
            "table_name",
        ],
        "joins": ["ScopedJoin", "split_conditions"],
        "model_code": [
            "map_stored_code_of_model",
            "JINJA_PARSER",
            "RUN_DATES",
            "list_jinja_macros",
            "is_signal_always_ready",
            "find_clock_calls_in",
            "find_environment_reads",
            "is_pure_macro",
            "is_too_deep",
            "parse_python",
            "find_random_calls_in",
            "reads_argument",
            "find_side_effects",
            "iterate_code_trees",
            "list_unused_edges",
        ],
        "spark_sql": [
            "enter_casts",
            "enter_expression",
            "find_only_frame",
            "is_spark_dialect",
            "read_as_spark",
            "spell_frame",
        ],
    },
)
