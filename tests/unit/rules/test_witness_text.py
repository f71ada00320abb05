"""The text of a unit test that is made of an example."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ci_bot.worker.duckdb_trials import (
    DuckdbExampleTable,
    DuckdbFields,
    FoundDuckdbExample,
    ValueType,
)
from ci_bot.worker.review.compared_queries import (
    _map_compared_tables_by_report_name,
    _write_witness_test,
)
from ci_bot.yaml_reader import read_yaml
from tests.unit.rules.world import models

VALUES: dict[str, Any] = {
    "plain": "abc",
    "on": "yes",
    "odd": 'a: "b" # \n{c}',
    "empty": "",
    "digits": "12",
    "day": date(1971, 3, 5),
    "ts": datetime(2024, 2, 29, 6, 0, 0),
    "amount": Decimal("1.50"),
    "whole": -7,
    "share": 0.5,
    "is_new": True,
    "nothing": None,
    "many": ["a", None, "null"],
    "struct": {"a": 1, "on": None},
    "structs": [{"a": "yes"}, None],
    "computed": DuckdbFields((("a", 1), ("b", ("x",)))),
}
READ = {**VALUES, "computed": {"a": 1, "b": ["x"]}, "ts": "2024-02-29 06:00:00", "amount": 1.5}


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_text__is_read_as_the_values_that_it_was_made_of(rows: int) -> None:
    found = models(
        {"m.sql": "MODEL (name db.m, kind FULL);\nSELECT order_id, status FROM raw.orders"}
    )
    (model,) = (one for one in found.values() if one.name == "db.m")
    (source,) = (fqn for fqn, one in found.items() if one.name == "raw.orders")
    kinds = tuple((name, ValueType("decimal", 10, 2)) for name in VALUES)
    table = DuckdbExampleTable(source.replace('"', ""), kinds, (tuple(VALUES.values()),) * rows)
    result = tuple(VALUES.values())
    example = FoundDuckdbExample((table,), tuple(VALUES), ((None, result), (result, None)), ("on",))

    text = _write_witness_test(
        "test_m_on", model, example, _map_compared_tables_by_report_name(found)
    )

    body = read_yaml(text)["test_m_on"]
    assert body["model"] == "db.m"
    assert body["inputs"] == {
        "raw.orders": {
            "columns": dict.fromkeys(VALUES, "decimal(10,2)"),
            "rows": [READ] * rows,
        }
    }
    assert body["outputs"] == {"partial": True, "query": {"rows": [READ]}}
