"""What a query means: names, scopes, columns and keys; whether two queries give the same rows; and
which columns of later models a change reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.sql import column_changes
    from ci_bot.worker.sql.algebra_blocks import Interner, TermKey
    from ci_bot.worker.sql.audit_promises import (
        Promises,
        Strictness,
        column_names,
        compare_arguments,
        compare_queries,
        promises,
        same_arguments,
    )
    from ci_bot.worker.sql.column_changes import (
        TIMESTAMPS,
        known_types,
        list_column_changes,
        retyped,
    )
    from ci_bot.worker.sql.equivalence_proof import WHOLE, Form, Join, Meaning, form_of, unquoted
    from ci_bot.worker.sql.interval_filters import (
        bounds_of,
        day_macro,
        is_interval_predicate,
        last_days,
        mentions_interval,
        time_column_origins,
    )
    from ci_bot.worker.sql.lineage_document import MOST_INDIRECT, impact_of
    from ci_bot.worker.sql.lineage_facts import ChangedProject, Definition, Model, ModelChange
    from ci_bot.worker.sql.missing_columns import (
        AuditFault,
        list_audit_faults,
        list_standalone_audit_faults,
    )
    from ci_bot.worker.sql.model_key import grain_columns, key_columns
    from ci_bot.worker.sql.model_query import (
        Queries,
        Query,
        Tree,
        conjuncts,
        origins,
        outer,
        place_of,
        plain,
        projection,
        selects,
        table_name,
        with_queries,
    )
    from ci_bot.worker.sql.nullability import NEVER, UNKNOWN, null_reason
    from ci_bot.worker.sql.personal_data import computed_from, exposed, names_in
    from ci_bot.worker.sql.positional_references import (
        ClauseKey,
        describe_moved,
        expression_text,
        list_clauses,
        list_keys,
    )
    from ci_bot.worker.sql.python_code import (
        always_ready,
        clock_calls,
        clock_calls_in,
        environment_reads,
        is_pure,
        parse,
        random_calls,
        random_calls_in,
        reads_argument,
        side_effects_in,
        trees,
        unused_edges,
    )

__all__ = [
    "MOST_INDIRECT",
    "NEVER",
    "TIMESTAMPS",
    "UNKNOWN",
    "WHOLE",
    "AuditFault",
    "ChangedProject",
    "ClauseKey",
    "Definition",
    "Form",
    "Interner",
    "Join",
    "Meaning",
    "Model",
    "ModelChange",
    "Promises",
    "Queries",
    "Query",
    "Strictness",
    "TermKey",
    "Tree",
    "always_ready",
    "bounds_of",
    "clock_calls",
    "clock_calls_in",
    "column_changes",
    "column_names",
    "compare_arguments",
    "compare_queries",
    "computed_from",
    "conjuncts",
    "day_macro",
    "describe_moved",
    "environment_reads",
    "exposed",
    "expression_text",
    "form_of",
    "grain_columns",
    "impact_of",
    "is_interval_predicate",
    "is_pure",
    "key_columns",
    "known_types",
    "last_days",
    "list_audit_faults",
    "list_clauses",
    "list_column_changes",
    "list_keys",
    "list_standalone_audit_faults",
    "mentions_interval",
    "names_in",
    "null_reason",
    "origins",
    "outer",
    "parse",
    "place_of",
    "plain",
    "projection",
    "promises",
    "random_calls",
    "random_calls_in",
    "reads_argument",
    "retyped",
    "same_arguments",
    "selects",
    "side_effects_in",
    "table_name",
    "time_column_origins",
    "trees",
    "unquoted",
    "unused_edges",
    "with_queries",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "algebra_blocks": ["Interner", "TermKey"],
        "audit_promises": [
            "Promises",
            "Strictness",
            "column_names",
            "compare_arguments",
            "compare_queries",
            "promises",
            "same_arguments",
        ],
        "column_changes": ["TIMESTAMPS", "known_types", "list_column_changes", "retyped"],
        "equivalence_proof": ["Form", "Join", "Meaning", "WHOLE", "form_of", "unquoted"],
        "interval_filters": [
            "bounds_of",
            "day_macro",
            "is_interval_predicate",
            "last_days",
            "mentions_interval",
            "time_column_origins",
        ],
        "lineage_document": ["MOST_INDIRECT", "impact_of"],
        "lineage_facts": ["ChangedProject", "Definition", "Model", "ModelChange"],
        "missing_columns": ["AuditFault", "list_audit_faults", "list_standalone_audit_faults"],
        "model_key": ["grain_columns", "key_columns"],
        "model_query": [
            "Queries",
            "Query",
            "Tree",
            "conjuncts",
            "origins",
            "outer",
            "place_of",
            "plain",
            "projection",
            "selects",
            "table_name",
            "with_queries",
        ],
        "nullability": ["NEVER", "UNKNOWN", "null_reason"],
        "personal_data": ["computed_from", "exposed", "names_in"],
        "positional_references": [
            "ClauseKey",
            "describe_moved",
            "expression_text",
            "list_clauses",
            "list_keys",
        ],
        "python_code": [
            "always_ready",
            "clock_calls",
            "clock_calls_in",
            "environment_reads",
            "is_pure",
            "parse",
            "random_calls",
            "random_calls_in",
            "reads_argument",
            "side_effects_in",
            "trees",
            "unused_edges",
        ],
    },
)
