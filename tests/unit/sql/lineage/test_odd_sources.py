"""Own changes of queries whose sources or columns are odd, and stay seen part by part."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from ci_bot.worker.sql.lineage.propagation import OwnPart, list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel, ModelDefinition

COLUMNS = {"s.t": ("id", "xs", "a"), "s.u": ("id", "b")}


def list_parts(before: str, after: str, *, known: bool = True) -> list[OwnPart]:
    trees: list[Any] = [sqlglot.parse_one(query, dialect="spark") for query in (before, after)]
    old, new = (ModelDefinition(rendered=tree) for tree in trees)
    model = LineageModel(
        "m.edited",
        parents=tuple(COLUMNS),
        change="direct",
        before=lambda: old,
        after=lambda: new,
    )
    return list_own_changes(model, COLUMNS if known else dict.fromkeys(COLUMNS))


def name_parts(before: str, after: str, *, known: bool = True) -> set[tuple[str | None, str]]:
    return {(part.column, part.how) for part in list_parts(before, after, known=known)}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "SELECT * FROM s.t UNION SELECT * FROM s.u",
            "SELECT * FROM s.t EXCEPT SELECT * FROM s.u",
            {(None, "rows")},
        ),
        (
            "SELECT v.k FROM (VALUES (1), (1), (2)) AS v(k)",
            "SELECT v.k FROM (VALUES (1), (2), (2)) AS v(k)",
            {(None, "rows"), ("k", "computed")},
        ),
        (
            "SELECT t.id FROM s.t AS t JOIN UNNEST(t.xs) AS e(x) ON TRUE",
            "SELECT t.id FROM s.t AS t LEFT JOIN UNNEST(t.xs) AS e(x) ON TRUE",
            {(None, "rows")},
        ),
        (
            "SELECT STACK(2, t.id, t.a) AS (k) FROM s.t AS t",
            "SELECT STACK(3, t.id, t.a, t.id) AS (k) FROM s.t AS t",
            {(None, "rows"), ("k", "computed")},
        ),
        (
            "SELECT t.id FROM s.t AS t JOIN (s.u AS u JOIN s.t AS w ON u.id = w.id) ON t.id = u.id",
            "SELECT t.id FROM s.t AS t JOIN (s.u AS u JOIN s.t AS w ON u.b = w.id) ON t.id = u.id",
            {(None, "rows")},
        ),
        (
            "SELECT t.id FROM s.t AS t LEFT JOIN s.u AS u ON t.id = u.id JOIN s.t AS w ON u.id = w.id",
            "SELECT t.id FROM s.t AS t LEFT JOIN (s.u AS u JOIN s.t AS w ON u.id = w.id) ON t.id = u.id",
            {(None, "rows")},
        ),
    ],
    ids=["set operation", "values", "unnest", "stack", "joins in brackets", "brackets of joins"],
)
def test_difference__is_seen(
    before: str, after: str, expected: set[tuple[str | None, str]]
) -> None:
    assert name_parts(before, after, known="*" not in before) == expected
    assert name_parts(before, before, known="*" not in before) == set()


def test_unknown_name__makes_only_its_own_column_doubtful() -> None:
    before = "SELECT t.id, nowhere.x AS x FROM s.t AS t"
    assert name_parts(before, before.replace("t.id", "t.a AS id")) == {("id", "computed")}


def test_column_of_a_semi_join__hides_no_column_that_is_shown() -> None:
    query = "SELECT DISTINCT id FROM s.t LEFT SEMI JOIN s.u ON t.id = u.id AND {}"
    assert name_parts(query.format("u.b = 1"), query.format("u.b = 2")) == {(None, "rows")}
