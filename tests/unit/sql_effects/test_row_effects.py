"""Which statements can change rows or values: the forms of Spark's, Delta's and Iceberg's reference."""

from __future__ import annotations

import pytest

from ci_bot.worker.sql_effects.judgement import can_statement_change_rows, do_statements_change_rows

KEEPS_ROWS = (
    "ANALYZE TABLE @this_model COMPUTE STATISTICS",
    "ANALYZE TABLE @this_model COMPUTE STATISTICS FOR ALL COLUMNS",
    "COMMENT ON TABLE @this_model IS 'orders'",
    "ALTER TABLE @this_model SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE @this_model UNSET TBLPROPERTIES ('a')",
    "REFRESH TABLE @this_model",
    "CACHE TABLE @{this_model}",
    "CACHE LAZY TABLE raw.orders",
    "UNCACHE TABLE raw.orders",
    "OPTIMIZE @this_model ZORDER BY (id)",
    "JINJA_STATEMENT_BEGIN;\nOPTIMIZE {{ this_model }};\nJINJA_END;",
    "VACUUM @this_model RETAIN 168 HOURS",
    "GRANT SELECT ON TABLE @this_model TO `analysts`",
    "SHOW TABLES IN raw",
    "SELECT 1",
    "SET spark.sql.shuffle.partitions = 10",
    "SET spark.sql.adaptive.enabled = true",
    "@IF(@runtime_stage = 'evaluating', ANALYZE TABLE @this_model COMPUTE STATISTICS)",
)
CHANGES_ROWS = (
    "DELETE FROM @this_model WHERE amount < 0",
    "INSERT INTO @this_model SELECT * FROM raw.late",
    "UPDATE @this_model SET amount = 0",
    "MERGE INTO @this_model AS t USING raw.late AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE TABLE @this_model",
    "JINJA_STATEMENT_BEGIN;\nDELETE FROM {{ this_model }};\nJINJA_END;",
    "@IF(@runtime_stage = 'evaluating', DELETE FROM @this_model WHERE amount < 0)",
    "@IF(@runtime_stage = 'creating', ANALYZE TABLE @this_model COMPUTE STATISTICS, "
    "DELETE FROM @this_model)",
    # A query that follows reads them.
    "CREATE OR REPLACE TEMPORARY VIEW recent AS SELECT * FROM raw.orders",
    "CACHE TABLE recent AS SELECT * FROM raw.orders",
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1",
    "SET VAR limit_of = 1",
    "USE lake.other",
    # Partitions, and their rows with them, are found or lost.
    "MSCK REPAIR TABLE raw.orders",
    "ALTER TABLE raw.orders RECOVER PARTITIONS",
    "ALTER TABLE @this_model DROP PARTITION (ds = '2024-01-01')",
    "SET spark.sql.ansi.enabled = true",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET spark.sql.files.ignoreCorruptFiles = true",
    "@a_macro_of_ours(@this_model)",
    "no statement at all",
)


@pytest.mark.parametrize("statement", KEEPS_ROWS)
def test_statement__that_writes_no_row_changes_none(statement: str) -> None:
    assert not can_statement_change_rows(statement, "spark")
    assert not do_statements_change_rows([], [statement], "spark")


@pytest.mark.parametrize("statement", CHANGES_ROWS)
def test_statement__that_may_change_rows_is_said_to(statement: str) -> None:
    assert can_statement_change_rows(statement, "spark")
    assert do_statements_change_rows([statement], [], "spark")


def test_statements__only_those_that_differ_count() -> None:
    clear, count = "DELETE FROM @this_model", "ANALYZE TABLE @this_model COMPUTE STATISTICS"
    assert not do_statements_change_rows([clear], [clear], "spark")
    assert not do_statements_change_rows([clear], [clear, count], "spark")
    assert do_statements_change_rows([clear], [clear, clear], "spark")


def test_statements__in_another_order_may_count_on_each_other() -> None:
    clear, fill = "DELETE FROM @this_model", "INSERT INTO @this_model SELECT 1"
    comment, count = "COMMENT ON TABLE @this_model IS 'x'", "REFRESH TABLE @this_model"
    assert do_statements_change_rows([clear, fill], [fill, clear], "spark")
    assert not do_statements_change_rows([comment, count], [count, comment], "spark")
