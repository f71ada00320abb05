"""Keeps what was once in the catalogue and adds what is new."""

from sqlmesh import CustomMaterialization
from sqlglot import exp


class AppendNew(CustomMaterialization):
    NAME = "append_new"

    def insert(self, table_name, query_or_df, model, is_first_insert, render_kwargs, **kwargs):
        key = model.custom_materialization_properties["key"]
        known = exp.select(key).from_(table_name)
        new = exp.select("*").from_(query_or_df.subquery("new")).where(f"NOT {key} IN ({known.sql('spark')})")
        self.adapter.insert_append(table_name, new, target_columns_to_types=model.columns_to_types)
