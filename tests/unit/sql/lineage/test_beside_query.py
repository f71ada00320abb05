"""What besides a query decides about a model's rows: models as SQLMesh loads them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.review.lineage_inputs import describe_change_beside_query


def model(kind: str = "FULL", more: str = "", after: str = "") -> Any:
    text = f"MODEL (name shop.customers, kind {kind}{more}); SELECT 1 AS id, 'x' AS ds; {after}"
    return load_sql_based_model(parse(text, default_dialect="spark"), dialect="spark")


QUIET = {
    "statistics": {"after": "ANALYZE TABLE @this_model COMPUTE STATISTICS"},
    "comment": {"after": "COMMENT ON TABLE @this_model IS 'x'"},
    "property": {"after": "ALTER TABLE @this_model SET TBLPROPERTIES ('a' = 'b')"},
    "refresh": {"after": "REFRESH TABLE @this_model"},
    "stamp": {"more": ", stamp 'again'"},
    "layout": {"more": ", partitioned_by ds"},
    "view": {"kind": "VIEW"},
    "interval of a whole table": {"more": ", interval_unit 'hour'"},
}
TOLD = {
    "delete": {"after": "DELETE FROM @this_model WHERE id < 0"},
    "kind": {"kind": "INCREMENTAL_BY_TIME_RANGE (time_column ds)"},
}
BY_TIME = "INCREMENTAL_BY_TIME_RANGE (time_column ds)"


@pytest.mark.parametrize("name", QUIET)
def test_rows__stay_where_only_something_around_them_changes(name: str) -> None:
    assert describe_change_beside_query(model(), model(**QUIET[name])) is None


@pytest.mark.parametrize("name", TOLD)
def test_rows__change_beside_the_query(name: str) -> None:
    assert describe_change_beside_query(model(), model(**TOLD[name]))


def test_interval__of_an_incremental_model_decides_about_its_rows() -> None:
    before, after = model(BY_TIME), model(BY_TIME, more=", interval_unit 'hour'")
    assert describe_change_beside_query(before, after) == "Its interval changes."
