"""Reading Spark's types, and deciding how two of them are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.data_diff.column_comparison import (
    align_types_of_diff,
    canonicalize_diff_value,
    carry_value_of_diff,
    cast_value_for_diff,
    is_comparable_in_diff,
    is_usable_as_diff_key,
    render_diff_values_agree,
)
from ci_bot.worker.data_diff.spec import DiffedSparkType, parse_diffed_spark_type

ATOMS = st.sampled_from(
    ["int", "bigint", "string", "double", "date", "timestamp_ntz", "interval day to second"]
).map(DiffedSparkType) | st.tuples(st.integers(1, 38), st.integers(0, 20)).map(
    lambda sizes: DiffedSparkType("decimal", sizes)
)
NAMES = st.text(alphabet="ab `:<>,.'\"\\é()", min_size=1, max_size=6)
TYPES = st.recursive(
    ATOMS,
    lambda inner: (
        inner.map(lambda t: DiffedSparkType("array", (), (("", t),)))
        | st.tuples(ATOMS, inner).map(
            lambda two: DiffedSparkType("map", (), (("", two[0]), ("", two[1])))
        )
        | st.lists(st.tuples(NAMES, inner), max_size=3).map(
            lambda fields: DiffedSparkType("struct", (), tuple(fields))
        )
    ),
    max_leaves=6,
)


@given(TYPES)
def test_parse__reads_what_ddl_writes(kind: DiffedSparkType) -> None:
    assert parse_diffed_spark_type(kind.ddl_text) == kind


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("DECIMAL", DiffedSparkType("decimal", (10, 0))),
        ("decimal( 12 , 4 )", DiffedSparkType("decimal", (12, 4))),
        ("decimal(5)", DiffedSparkType("decimal", (5, 0))),
        ("integer", DiffedSparkType("int")),
        ("Long", DiffedSparkType("bigint")),
        ("timestamp_ltz", DiffedSparkType("timestamp")),
        ("varchar(20)", DiffedSparkType("varchar", (20,))),
        ("interval day to second", DiffedSparkType("interval day to second")),
        ("struct<>", DiffedSparkType("struct")),
        ("struct<a b:int>", DiffedSparkType("struct", (), (("a b", DiffedSparkType("int")),))),
        (
            "map<string, array<int>>",
            DiffedSparkType(
                "map",
                (),
                (
                    ("", DiffedSparkType("string")),
                    ("", DiffedSparkType("array", (), (("", DiffedSparkType("int")),))),
                ),
            ),
        ),
    ],
)
def test_parse__forms_that_spark_writes(ddl: str, kind: DiffedSparkType) -> None:
    assert parse_diffed_spark_type(ddl) == kind


@pytest.mark.parametrize(
    "ddl",
    [
        "",
        "array<>",
        "array<int",
        "array<int,int>",
        "map<int>",
        "struct<a>",
        "int)",
        "struct<a:int,>",
    ],
)
def test_parse__text_that_is_no_type_stands_for_itself(ddl: str) -> None:
    assert parse_diffed_spark_type(ddl) == DiffedSparkType(ddl)
    assert not is_comparable_in_diff(parse_diffed_spark_type(ddl))


@pytest.mark.parametrize(
    ("prod", "pr", "wider"),
    [
        ("int", "int", "int"),
        ("tinyint", "int", "int"),
        ("bigint", "smallint", "bigint"),
        ("float", "double", "double"),
        ("bigint", "double", "double"),
        ("decimal(10,2)", "float", "double"),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(10,4)", "decimal(12,4)"),
        ("int", "decimal(10,2)", "decimal(12,2)"),
        ("varchar(5)", "varchar(9)", "varchar(5)"),
        ("char(5)", "string", "string"),
        ("date", "timestamp", "timestamp"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("int", "string", "string"),
        ("varchar(3)", "date", "string"),
    ],
)
def test_align__types_that_hold_the_same_values(prod: str, pr: str, wider: str) -> None:
    for one, other in ((prod, pr), (pr, prod)):
        found = align_types_of_diff(parse_diffed_spark_type(one), parse_diffed_spark_type(other))
        assert found is not None
        # Every text is compared as text, whatever it is called.
        texts = {"string", "varchar", "char"}
        assert (
            found == parse_diffed_spark_type(wider)
            or {found.name, parse_diffed_spark_type(wider).name} <= texts
        )


@pytest.mark.parametrize(
    ("prod", "pr"),
    [
        ("string", "double"),  # 1.0, 1 and 1e0
        ("string", "timestamp"),
        ("string", "boolean"),
        ("boolean", "int"),
        ("int", "date"),
        ("binary", "string"),
        ("array<int>", "array<bigint>"),
        ("struct<a:int>", "struct<b:int>"),
        ("decimal(38,0)", "decimal(38,10)"),  # no decimal of Spark holds both
        ("interval", "interval"),
        ("variant", "variant"),
    ],
)
def test_align__nothing_sensible(prod: str, pr: str) -> None:
    assert align_types_of_diff(parse_diffed_spark_type(prod), parse_diffed_spark_type(pr)) is None
    assert align_types_of_diff(parse_diffed_spark_type(pr), parse_diffed_spark_type(prod)) is None


@given(TYPES, TYPES)
def test_align__does_not_depend_on_the_side(one: DiffedSparkType, other: DiffedSparkType) -> None:
    assert align_types_of_diff(one, other) == align_types_of_diff(other, one)


def test_usable_as_key__no_map_anywhere() -> None:
    assert is_usable_as_diff_key(parse_diffed_spark_type("struct<a:int,b:array<string>>"))
    assert not is_usable_as_diff_key(parse_diffed_spark_type("array<map<int,int>>"))
    assert not is_usable_as_diff_key(parse_diffed_spark_type("interval"))


def test_cast__only_where_the_type_differs() -> None:
    assert (
        cast_value_for_diff("x", parse_diffed_spark_type("int"), parse_diffed_spark_type("int"))
        == "x"
    )
    assert (
        cast_value_for_diff(
            "x", parse_diffed_spark_type("varchar(5)"), parse_diffed_spark_type("string")
        )
        == "x"
    )
    assert (
        cast_value_for_diff("x", parse_diffed_spark_type("int"), parse_diffed_spark_type("bigint"))
        == "CAST(x AS bigint)"
    )


def test_canonical__leaves_types_without_a_map_alone() -> None:
    assert canonicalize_diff_value("x", parse_diffed_spark_type("struct<a:array<int>>")) == "x"


def test_canonical__maps_at_every_depth() -> None:
    kind = parse_diffed_spark_type("struct<`a``b`:array<map<string,map<int,int>>>>")
    assert canonicalize_diff_value("src.`x`", kind) == (
        "IF(src.`x` IS NULL, NULL, NAMED_STRUCT('f0', TRANSFORM(src.`x`.`a``b`, x0 -> "
        "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(x0), x1 -> NAMED_STRUCT('k', x1.key, 'v', "
        "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(x1.value), x2 -> "
        "NAMED_STRUCT('k', x2.key, 'v', x2.value)))))))))"
    )


def test_carried__text_travels_as_its_hash() -> None:
    assert carry_value_of_diff("x", parse_diffed_spark_type("varchar(9)")) == "XXHASH64(x)"
    assert carry_value_of_diff("x", parse_diffed_spark_type("binary")) == "XXHASH64(x)"
    # The hash of a nested value skips NULLs, so [1, NULL] and [NULL, 1] would be the same.
    assert carry_value_of_diff("x", parse_diffed_spark_type("array<string>")) == "x"
    assert carry_value_of_diff("x", parse_diffed_spark_type("bigint")) == "x"


def test_equal__rounds_only_what_can_differ_behind_the_last_digit() -> None:
    assert (
        "TRY_CAST(a AS DECIMAL(38, 3)) = TRY_CAST(b AS DECIMAL(38, 3))"
        in render_diff_values_agree("a", "b", parse_diffed_spark_type("double"), 3)
    )
    assert "DECIMAL(38, 3)" in render_diff_values_agree(
        "a", "b", parse_diffed_spark_type("decimal(10,4)"), 3
    )
    assert (
        render_diff_values_agree("a", "b", parse_diffed_spark_type("decimal(10,3)"), 3) == "a <=> b"
    )
    assert render_diff_values_agree("a", "b", parse_diffed_spark_type("int"), 3) == "a <=> b"
    assert render_diff_values_agree("a", "b", parse_diffed_spark_type("string"), 3) == "a = b"
