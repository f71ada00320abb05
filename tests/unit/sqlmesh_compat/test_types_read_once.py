"""Types that are read once are what they are when each is read."""

from __future__ import annotations

import pytest
from sqlglot import ParseError, exp
from sqlmesh.core.model import meta

from ci_bot.worker.sqlmesh_compat.skipped_work import cache_types_that_sqlglot_parses

TEXTS = ["int", "VARCHAR(10)", "struct<a: int, b: array<string>>", "decimal(18, 4)", "unknown"]


@pytest.mark.parametrize("dialect", ["spark", "duckdb", "tsql", "", None])
@pytest.mark.parametrize("text", TEXTS)
def test_type__is_the_same_and_nobody_elses(text: str, dialect: str | None) -> None:
    def built() -> str:
        try:
            return repr(exp.DataType.build(text, dialect=dialect, udt=True))
        except ParseError as error:
            return str(error)

    before = built()
    with cache_types_that_sqlglot_parses():
        first = built()
        assert (first, built()) == (before, before)


def test_type__that_is_changed_stays_one_columns_own() -> None:
    with cache_types_that_sqlglot_parses():
        one, other = (exp.DataType.build("decimal(18, 4)", dialect="spark") for _ in range(2))
        one.set("expressions", [])
        assert other == exp.DataType.build("decimal(18, 4)", dialect="spark")
        first, second = (
            meta.parse_one("decimal(18, 4)", read="spark", into=exp.DataType) for _ in range(2)
        )
        assert first == second
        assert first is not second


def test_reading__is_as_before_after_the_block() -> None:
    def now() -> tuple[object, object]:
        return vars(exp.DataType)["build"], meta.parse_one

    plain = now()
    with pytest.raises(RuntimeError), cache_types_that_sqlglot_parses():
        assert now()[0] is not plain[0]
        raise RuntimeError
    assert now() == plain


def test_text_that_is_no_type__fails_each_time() -> None:
    with cache_types_that_sqlglot_parses():
        for _ in range(2):
            with pytest.raises(ParseError):
                exp.DataType.build("1 2 (", dialect="spark")
