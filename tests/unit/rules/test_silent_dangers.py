"""Dangers that SQLMesh's category does not show: nothing fails, and no model looks changed."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.worker.rules.files.package_versions import list_version_bounds_in_file
from ci_bot.worker.rules.files.seeds import parse_seed_number
from tests.unit.rules.world import change, files, seen

HISTORY = (
    "MODEL (name mart.h, kind SCD_TYPE_2_BY_TIME (unique_key customer_id, "
    "updated_at_name updated_at, invalidate_hard_deletes {0}));\n"
    "SELECT c.customer_id, c.country, c.updated_at FROM {1}"
)


def weights(model: str, rule: str, **more: str) -> list[str]:
    around = {f"models/{name}.sql": text for name, text in more.items()}
    return [one.severity for one in seen(change({}, {**around, "models/m.sql": model}), rule)]


# ------------------------------------------------------------------ histories of a part of a source


@pytest.mark.parametrize(
    "source",
    [
        "raw.customers AS c WHERE c.updated_at >= @start_ts",
        "raw.customers AS c WHERE c.updated_at > CURRENT_DATE - INTERVAL '30' DAY",
        "raw.customers AS c WHERE DATEDIFF(CURRENT_DATE, c.updated_at) < 30",
        "raw.customers AS c WHERE CURRENT_DATE - INTERVAL '30' DAY < c.updated_at",
        "(SELECT * FROM raw.customers WHERE updated_at >= NOW() - INTERVAL '1' DAY) AS c",
        "raw.customers AS c LIMIT 1000",
        "raw.customers TABLESAMPLE (10 PERCENT) AS c",
        "raw.customers_cdc AS c",
    ],
)
def test_history__that_closes_what_is_not_delivered_is_high(source: str) -> None:
    assert weights(HISTORY.format("true", source), "hard-deletes-partial-source") == ["high"]
    assert weights(HISTORY.format("false", source), "hard-deletes-partial-source") == []


@pytest.mark.parametrize(
    "source",
    [
        "raw.customers AS c",
        "raw.customers AS c WHERE NOT c.customer_id IS NULL",
        "raw.customers AS c WHERE c.country <> 'test'",
        # More rows pass from day to day, and none leaves again.
        "raw.customers AS c WHERE c.updated_at <= CURRENT_TIMESTAMP",
        "raw.customers AS c WHERE c.updated_at < @end_ts",
        "raw.customers AS c WHERE c.updated_at >= '2024-01-01'",
        # The window is of the partner, and no row of the customers hangs on it.
        "raw.customers AS c LEFT JOIN (SELECT customer_id FROM raw.orders "
        "WHERE order_ts > CURRENT_DATE) AS o ON o.customer_id = c.customer_id",
    ],
)
def test_history__of_everything_that_exists_is_quiet(source: str) -> None:
    assert weights(HISTORY.format("true", source), "hard-deletes-partial-source") == []


def test_history__over_a_view_of_a_window_is_high_and_over_a_joined_one_too() -> None:
    view = (
        "MODEL (name stg.recent, kind VIEW);\nSELECT o.customer_id FROM raw.orders AS o "
        "WHERE o.order_ts > CURRENT_DATE - INTERVAL '30' DAY"
    )
    joined = HISTORY.format(
        "true", "raw.customers AS c JOIN stg.recent AS r ON r.customer_id = c.customer_id"
    )
    plain = HISTORY.format(
        "true", "raw.customers AS c JOIN raw.orders AS r ON r.customer_id = c.customer_id"
    )
    rule = "hard-deletes-partial-source"
    assert sorted(weights(joined, rule, recent=view)) == ["high", "medium"]
    assert weights(plain, rule) == ["medium"]


# ------------------------------------------------------------------------------ keys that are NULL

MERGE = (
    "MODEL (name mart.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (order_id, part)){0});\n"
    "SELECT o.order_id, {1} AS part FROM raw.orders AS o {2}"
)
LEFT = "LEFT JOIN raw.customers AS c ON c.customer_id = o.customer_id"


@pytest.mark.parametrize(
    ("value", "tail"),
    [
        ("c.country", LEFT),
        ("UPPER(TRIM(c.country))", LEFT),
        ("c.country", f"{LEFT} WHERE o.amount > 0"),
        ("COALESCE(c.country, c.email)", LEFT),
        ("NULLIF(o.status, '')", ""),
        ("TRY_CAST(o.status AS INT)", ""),
        ("CASE WHEN o.amount > 0 THEN 'paid' END", ""),
        ("CASE WHEN o.amount > 0 THEN 'paid' ELSE c.country END", LEFT),
        ("o.status", "RIGHT JOIN raw.customers AS c ON c.customer_id = o.customer_id"),
    ],
)
def test_key__with_a_part_that_can_be_null_is_high(value: str, tail: str) -> None:
    assert set(weights(MERGE.format("", value, tail), "merge-key-null")) == {"high"}


@pytest.mark.parametrize(
    ("audits", "value", "tail"),
    [
        ("", "COALESCE(c.country, 'none')", LEFT),
        ("", "c.country", f"{LEFT} WHERE NOT c.country IS NULL"),
        ("", "c.country", f"{LEFT} WHERE c.country = 'DE'"),
        ("", "c.country", "JOIN raw.customers AS c ON c.customer_id = o.customer_id"),
        ("", "CASE WHEN o.amount > 0 THEN 'paid' ELSE 'open' END", ""),
        (", audits (not_null(columns := (part)))", "c.country", LEFT),
        ("", "CAST(COALESCE(o.status, '') AS STRING)", ""),
        # Nothing says whether it can.
        ("", "o.status", ""),
        ("", "CAST(o.status AS STRING)", ""),
    ],
)
def test_key__without_a_null_or_a_sign_of_one_is_quiet(audits: str, value: str, tail: str) -> None:
    assert weights(MERGE.format(audits, value, tail), "merge-key-null") == []


def test_key__whose_column_another_query_gives_a_value_can_be_null() -> None:
    other = (
        "MODEL (name mart.o, kind FULL);\n"
        "SELECT COALESCE(o.status, 'none') AS status FROM raw.orders AS o"
    )
    (found,) = seen(
        change({}, {"models/o.sql": other, "models/m.sql": MERGE.format("", "o.status", "")}),
        "merge-key-null",
    )
    assert "`mart.o` tests whether it is NULL in its source" in found.evidence
    # A value for rows without a match says nothing about the column itself.
    joined = other.replace("FROM raw.orders AS o", f"FROM raw.customers AS c {_LEFT_OF_ORDERS}")
    assert weights(MERGE.format("", "o.status", ""), "merge-key-null", o=joined) == []


_LEFT_OF_ORDERS = "LEFT JOIN raw.orders AS o ON o.customer_id = c.customer_id"


WHOLE = "MODEL (name mart.m, kind {0}, audits (unique_values(columns := (status))));\nSELECT {1} FROM raw.orders AS o {2}"
BY_STATUS = "INCREMENTAL_BY_UNIQUE_KEY (unique_key {})"


@pytest.mark.parametrize(
    ("key", "value", "tail", "expected"),
    [
        ("COALESCE(status, -1)", "o.status", "", ["medium"]),
        ("IFNULL(status, 'none')", "o.status", "", ["medium"]),
        ("status", "COALESCE(o.status, 'none') AS status", "", ["high"]),
        ("status", "CAST(COALESCE(UPPER(o.status), '') AS STRING) AS status", "", ["high"]),
        ("COALESCE(status, -1)", "NULLIF(o.status, '') AS status", "", ["high"]),
        ("COALESCE(status, '')", "c.country AS status", LEFT, ["high"]),
        ("(COALESCE(status, ''), COALESCE(amount, 0))", "o.status, o.amount", "", ["medium"]),
        # Another part tells them apart, or the query makes one row of each.
        ("(order_id, COALESCE(status, ''))", "o.order_id, o.status", "", []),
        ("status", "COALESCE(o.status, '') AS status, COUNT(*) AS n", "GROUP BY 1", []),
        ("COALESCE(status, '')", "DISTINCT o.status", "", []),
        # There are none.
        ("COALESCE(status, '')", "o.status", "WHERE NOT o.status IS NULL", []),
        ("COALESCE(status, email)", "o.status, o.email", "", []),
        ("status", "COALESCE(o.status, o.email) AS status", "", []),
    ],
)
def test_key__that_is_one_constant_for_all_rows_without_it(
    key: str, value: str, tail: str, expected: list[str]
) -> None:
    model = WHOLE.format(BY_STATUS.format(key), value, tail)
    found = [
        item.severity
        for item in seen(change({}, {"models/m.sql": model}), "merge-key-null")
        if "as their key" in item.evidence
    ]
    assert found == expected


# ------------------------------------------------------------------------------ values by chance

GROUPED = (
    "MODEL (name mart.m, kind FULL);\nSELECT o.customer_id, {0} AS v FROM raw.orders AS o "
    "GROUP BY o.customer_id"
)


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("COLLECT_LIST(o.status)", "high"),
        ("ARRAY_AGG(o.status)", "high"),
        ("COLLECT_LIST(o.status)[0]", "high"),
        ("CONCAT_WS(',', COLLECT_SET(o.status))", "high"),
        ("FIRST(o.status, true)", "high"),
        ("LAST(o.amount)", "high"),
        ("ANY_VALUE(o.status)", "high"),
        ("MAX_BY(o.status, o.order_ts)", "medium"),
        ("COLLECT_SET(o.status)", "low"),
    ],
)
def test_aggregate__that_hangs_on_the_order_of_rows(value: str, severity: str) -> None:
    assert weights(GROUPED.format(value), "unordered-aggregate") == [severity]


@pytest.mark.parametrize(
    "value",
    [
        "SORT_ARRAY(COLLECT_LIST(o.status))",
        "ARRAY_JOIN(SORT_ARRAY(ARRAY_DISTINCT(COLLECT_LIST(o.status))), ',')",
        "SIZE(COLLECT_SET(o.status))",
        "ARRAY_CONTAINS(COLLECT_LIST(o.status), 'paid')",
        "ANY_VALUE(o.customer_id)",
        "FIRST(o.customer_id)",
        "MAX(o.status)",
    ],
)
def test_aggregate__that_gives_one_value_whatever_the_order(value: str) -> None:
    assert weights(GROUPED.format(value), "unordered-aggregate") == []


def test_aggregate__of_what_hangs_on_a_key_is_quiet() -> None:
    customers = (
        "MODEL (name stg.customers, kind FULL, grain customer_id);\n"
        "SELECT c.customer_id, c.country FROM raw.customers AS c"
    )
    by_key = (
        "MODEL (name mart.m, kind FULL);\nSELECT o.customer_id, ANY_VALUE(c.country) AS v "
        "FROM raw.orders AS o JOIN stg.customers AS c ON c.customer_id = o.customer_id "
        "GROUP BY o.customer_id"
    )
    by_other = by_key.replace("o.customer_id, ANY", "o.status, ANY").replace(
        "GROUP BY o.customer_id", "GROUP BY o.status"
    )
    assert weights(by_key, "unordered-aggregate", c=customers) == []
    assert weights(by_other, "unordered-aggregate", c=customers) == ["high"]


# -------------------------------------------------------------------------------- scalar subqueries

SCALAR = (
    "MODEL (name mart.m, kind FULL);\nSELECT c.customer_id, (SELECT {0}) AS v "
    "FROM raw.customers AS c"
)


@pytest.mark.parametrize(
    "inner",
    [
        "o.status FROM raw.orders AS o WHERE o.customer_id = c.customer_id",
        "MAX(o.amount) FROM raw.orders AS o GROUP BY o.status",
        "o.status FROM raw.orders AS o LIMIT 2",
    ],
)
def test_subquery__that_may_give_several_rows_is_high(inner: str) -> None:
    assert weights(SCALAR.format(inner), "scalar-subquery-rows") == ["high"]


@pytest.mark.parametrize(
    "inner",
    [
        "MAX(o.amount) FROM raw.orders AS o WHERE o.customer_id = c.customer_id",
        "COUNT(*) FROM raw.orders AS o",
        "o.status FROM raw.orders AS o ORDER BY o.order_id LIMIT 1",
        "k.country FROM stg.keyed AS k WHERE k.customer_id = c.customer_id",
    ],
)
def test_subquery__of_one_row_is_quiet(inner: str) -> None:
    keyed = (
        "MODEL (name stg.keyed, kind FULL, grain customer_id);\n"
        "SELECT c.customer_id, c.country FROM raw.customers AS c"
    )
    assert weights(SCALAR.format(inner), "scalar-subquery-rows", k=keyed) == []


def test_subquery__that_is_a_list_or_a_source_is_no_value() -> None:
    model = (
        "MODEL (name mart.m, kind FULL);\nSELECT x.order_id FROM (SELECT o.order_id, o.customer_id "
        "FROM raw.orders AS o) AS x WHERE x.customer_id IN (SELECT c.customer_id FROM "
        "raw.customers AS c) AND EXISTS (SELECT 1 FROM raw.customers AS c WHERE c.country = 'DE')"
    )
    assert weights(model, "scalar-subquery-rows") == []


# ------------------------------------------------------------------------- columns that never arrive

LOG = (
    "MODEL (name stg.log, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 9, "
    "forward_only {0}, on_additive_change {1}, on_destructive_change ignore));\n"
    "SELECT CAST(o.order_ts AS DATE) AS day, CAST(o.order_id AS BIGINT) AS order_id{2} "
    "FROM raw.orders AS o WHERE CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds"
)
MORE = ", CAST(o.status AS STRING) AS status"


def test_column__that_is_ignored_is_high_also_where_the_setting_is_old() -> None:
    for before in ("ignore", "allow"):
        inputs = change(
            {"models/l.sql": LOG.format("true", before, "")},
            {"models/l.sql": LOG.format("true", "ignore", MORE)},
        )
        (found,) = seen(inputs, "column-not-added")
        assert (found.severity, found.subject) == ("high", "status")
        assert not seen(inputs, "forward-only-history-mixed"), "nothing is NULL: there is no column"


def test_column__is_added_where_the_table_is_new_or_the_change_is_allowed() -> None:
    for forward_only, additive in (("false", "ignore"), ("true", "allow")):
        inputs = change(
            {"models/l.sql": LOG.format(forward_only, additive, "")},
            {"models/l.sql": LOG.format(forward_only, additive, MORE)},
        )
        assert seen(inputs, "column-not-added") == []


def test_column__is_ignored_in_a_forward_only_plan_of_any_model() -> None:
    inputs = change(
        {"models/l.sql": LOG.format("false", "ignore", "")},
        {"models/l.sql": LOG.format("false", "ignore", MORE)},
    )
    (model,) = (fqn for fqn in inputs.after if fqn.endswith('"log"'))
    (found,) = seen(replace(inputs, forward_only=frozenset({model})), "column-not-added")
    assert found.severity == "high"


def test_column__that_goes_and_is_ignored_stays_in_the_table() -> None:
    inputs = change(
        {"models/l.sql": LOG.format("true", "allow", MORE)},
        {"models/l.sql": LOG.format("true", "allow", "")},
    )
    (found,) = seen(inputs, "forward-only-destructive")
    assert "leaves `status` in the production table" in found.evidence
    assert "dropped" not in found.evidence


# --------------------------------------------------------------------------- files out of sight


def ignoring(root: Path, *patterns: str) -> dict[str, str]:
    """The weights by folder of what patterns take out of sight, in a project on disk."""
    for name in ("tests/test_a.yaml", "tests/deep/test_b.yaml", "audits/rows.sql", "models/m.sql"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    lines = "".join(f"- '{pattern}'\n" for pattern in patterns)
    inputs = files({"config.yaml": "a: 1\n"}, {"config.yaml": f"a: 1\nignore_patterns:\n{lines}"})
    found = seen(replace(inputs, repository=root), "files-ignored")
    return {str(one.subject): one.severity for one in found}


def test_files__that_a_pattern_takes_out_of_sight_are_named(tmp_path: Path) -> None:
    assert ignoring(tmp_path, "tests/test_a.yaml") == {"tests": "high"}
    assert ignoring(tmp_path, "*.yaml") == {"tests": "high"}
    assert ignoring(tmp_path, "audits/*.sql") == {"audits": "high"}
    assert ignoring(tmp_path, "models/*.sql") == {"models": "medium"}
    assert ignoring(tmp_path, "**/*.sql") == {"audits": "high", "models": "medium"}


def test_files__that_no_pattern_matches_are_still_seen(tmp_path: Path) -> None:
    assert ignoring(tmp_path, "*.draft.sql", "docs/**", "") == {}
    # SQLMesh only matches tests, from the right: this one names a folder between.
    assert ignoring(tmp_path, "test/**") == {}


# ----------------------------------------------------------------------------- versions


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("requirements.txt", "pyspark==3.5.1\n", "pyspark==4.0.0\n"),
        ("requirements.lock", "pandas==2.2.3\n", "pandas==3.0.0\n"),
        ("requirements.txt", "numpy>=1.26,<2\n", "numpy>=2,<3\n"),
        ("requirements/prod.txt", "pyspark[sql] ~= 3.5\n", "pyspark[sql] ~= 4.0\n"),
        ("requirements.txt", "pyspark>=3.5,<4\n", "pyspark>=3.5\n"),
        ("requirements.txt", "pyspark==3.5.1\n", "pyspark\n"),
        ("requirements.txt", "pyspark==3.5.1\npandas==2\n", "pyspark\npandas==2\n"),
        ("requirements.txt", "sqlmesh==0.236.4\n", "sqlmesh==1.0.0\n"),
        ("requirements.txt", "sqlmesh[web]==0.236.4\na==1\n", "sqlmesh[web]\na==1\n"),
        ("pyproject.toml", 'd = ["pyspark==3.5.1"]\n', 'd = ["pyspark==4.0.0"]\n'),
        ("pyproject.toml", 'pyspark = "^3.5"\n', 'pyspark = "^4.0"\n'),
        ("pyproject.toml", 'pyspark = {version = "^3.5"}\n', 'pyspark = {version = "^4.0"}\n'),
        ("Pipfile", 'pyspark = "==3.5.1"\n', 'pyspark = "==4.0.0"\n'),
        ("Pipfile.lock", '{"pyspark": {"version": "==3.5.1"}}', '{"pyspark": {"version": "==4"}}'),
        ("uv.lock", 'name = "pyspark"\nversion = "3.5.1"', 'name = "pyspark"\nversion = "4.0.0"'),
        ("Dockerfile", "FROM apache/spark:3.5.1\n", "FROM apache/spark:4.0.0-python3\n"),
        ("Dockerfile", "RUN pip install pyspark==3.5.1\n", "RUN pip install pyspark==4.0.0\n"),
        (".github/workflows/ci.yml", "requirements: pyspark==3.5\n", "requirements: pyspark==4\n"),
        ("requirements.txt", "databricks-connect==14.3.1\n", "databricks-connect==17.0.0\n"),
    ],
)
def test_version__of_another_major_is_high(path: str, before: str, after: str) -> None:
    (found,) = seen(files({path: before}, {path: after}), "engine-version-changed")
    assert found.severity == "high"
    assert seen(files({path: before}, {path: before + "\n"}), "engine-version-changed") == []


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("requirements.txt", "pyspark==3.4.2\n", "pyspark==3.5.7\n"),
        ("requirements.txt", "pyspark>=3.4,<4\n", "pyspark~=3.5\n"),
        ("requirements.txt", "pyspark>=3.4\n", "pyspark>=3.5\n"),
        ("requirements.txt", "sqlmesh==0.227.1\n", "sqlmesh==0.236.4\n"),
        ("requirements.txt", "sqlmesh>=0.227\n", "sqlmesh>=0.236\n"),
        ("requirements.txt", "sqlmesh==0.236.4\n", "sqlmesh>=0.236,<0.237\n"),
        ("requirements.txt", "pyspark-stubs==3.0.0\n", "pyspark-stubs==4.0.0\n"),
        ("requirements.txt", "my-pyspark==3.0\n", "my-pyspark==4.0\n"),
        ("requirements.txt", "# pyspark==3.5\na==1\n", "# pyspark==4.0\na==1\n"),
        ("requirements.txt", "pandas==2.0\n", "pandas==2.2\n"),
        ("README.md", "pyspark==3.5.1\n", "pyspark==4.0.0\n"),
        ("models/m.sql", "-- pyspark==3.5.1\n", "-- pyspark==4.0.0\n"),
    ],
)
def test_version__of_the_same_major_is_quiet(path: str, before: str, after: str) -> None:
    assert seen(files({path: before}, {path: after}), "engine-version-changed") == []


def test_version__is_read_with_its_end() -> None:
    held = list_version_bounds_in_file(
        "requirements.txt", "pyspark>=3.5,<4.0\nsqlmesh[spark]>=0.230\n"
    )
    assert (held["pyspark"].major, held["pyspark"].is_open) == (3, False)
    assert (held["sqlmesh"].major, held["sqlmesh"].is_open) == (0, True)


# ------------------------------------------------------------------------------------------ seeds

SEED = (
    "MODEL (name ref.rates, kind SEED (path '../seeds/rates.csv'), "
    "columns (country STRING, label STRING, rate DECIMAL(6, 3)), grain country)"
)
ROWS = "country,label,rate\nDE,Germany,0.19\nFR,Frence,0.20\n"


@pytest.mark.parametrize(
    ("after", "severity", "words"),
    [
        (ROWS.replace("0.19", "0.16"), "high", "`rate` has other values in 1 of 2 rows"),
        (ROWS.replace("Frence", "France"), "low", "`label` has other texts in 1 of 2 rows"),
        (f"{ROWS}NL,Netherlands,0.21\n", "info", "1 row is added."),
    ],
)
def test_seed__says_whether_rows_texts_or_values_differ(
    after: str, severity: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / "seeds" / "rates.csv").write_text(ROWS)
    inputs = change(
        {}, {}, other_before={"seeds/rates.csv": ROWS}, other_after={"seeds/rates.csv": after}
    )
    seed = {"seed": _seed(tmp_path)}
    sides = replace(inputs, repository=tmp_path, before=seed, after=seed)
    (found,) = seen(sides, "seed-values-changed")
    assert found.severity == severity
    assert words in found.evidence


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (ROWS.replace("0.20", "0.2"), False),
        (ROWS.replace("0.20", " 2e-1"), False),
        (ROWS.replace("0.20", "0.2").replace("0.19", "0.18"), True),
        (ROWS.replace("Frence", "1"), True),
    ],
)
def test_seed__with_numbers_of_another_spelling_has_the_same_values(
    after: str, says: bool, tmp_path: Path
) -> None:
    for folder in ("seeds", "models"):
        (tmp_path / folder).mkdir()
    (tmp_path / "seeds" / "rates.csv").write_text(ROWS)
    inputs = change(
        {}, {}, other_before={"seeds/rates.csv": ROWS}, other_after={"seeds/rates.csv": after}
    )
    seed = {"seed": _seed(tmp_path)}
    sides = replace(inputs, repository=tmp_path, before=seed, after=seed)
    assert bool(seen(sides, "seed-values-changed")) is says


def test_seed__with_a_number_that_is_padded_is_read_in_a_moment() -> None:
    begun = time.process_time()
    assert parse_seed_number("1" * 100_000 + "x") is None
    assert time.process_time() - begun < 1


def _seed(root: Path):  # type: ignore[no-untyped-def]  # SQLMesh's models are not typed for us
    from sqlmesh.core import dialect as d
    from sqlmesh.core.model import load_sql_based_model

    return load_sql_based_model(
        d.parse(SEED, default_dialect="spark"),
        dialect="spark",
        default_catalog="spark_catalog",
        path=root / "models" / "rates.sql",
        defaults={"dialect": "spark"},
    )


@pytest.mark.parametrize(
    ("kind", "where", "found"),
    [
        ("INCREMENTAL_UNMANAGED", "", ["high"]),
        ("INCREMENTAL_UNMANAGED", "WHERE o.status = 'open'", ["high"]),
        ("INCREMENTAL_UNMANAGED", "WHERE o.order_ts BETWEEN @start_ts AND @end_ts", []),
        (
            "INCREMENTAL_UNMANAGED",
            "WHERE NOT EXISTS (SELECT 1 FROM mart.log AS l WHERE l.order_id = o.order_id)",
            [],
        ),
        ("INCREMENTAL_UNMANAGED (insert_overwrite true)", "", []),
        ("FULL", "", []),
    ],
)
def test_new_model__that_appends_the_same_rows_in_each_run(
    kind: str, where: str, found: list[str]
) -> None:
    model = f"MODEL (name mart.log, kind {kind}); SELECT o.order_id, o.status FROM raw.orders AS o {where}"
    inputs = change({}, {"models/log.sql": model})
    assert [item.severity for item in seen(inputs, "time-filter-missing")] == found


MERGED = (
    "MODEL (name core.o, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key {key}), table_format iceberg,"
    " grain {key}{more}); SELECT o.order_id, o.status, c.customer_id, c.region FROM raw.orders AS o {join}"
    " WHERE o.order_ts BETWEEN @start_ts AND @end_ts"
)
CUSTOMERS = "MODEL (name stg.customers, kind FULL, grain customer_id); SELECT c.customer_id, c.region FROM raw.customers AS c"
ON_CUSTOMER = "ON c.customer_id = o.customer_id"


@pytest.mark.parametrize(
    ("join", "key", "more", "severity"),
    [
        (f"LEFT JOIN raw.customers AS c {ON_CUSTOMER}", "order_id", "", "high"),
        ("JOIN stg.customers AS c ON c.region = o.status", "order_id", "", "high"),
        (f"JOIN stg.customers AS c {ON_CUSTOMER}", "order_id", "", "medium"),
        (f"JOIN raw.customers AS c {ON_CUSTOMER}", "(order_id, customer_id)", "", "medium"),
        (
            f"JOIN raw.customers AS c {ON_CUSTOMER}",
            "order_id",
            ", audits (unique_values(columns := (order_id)))",
            None,
        ),
    ],
)
def test_new_merge__behind_a_join_that_may_give_several_rows(
    join: str, key: str, more: str, severity: str | None
) -> None:
    """The grain is a claim of the same file."""
    stays = {"models/customers.sql": CUSTOMERS}
    model = MERGED.format(join=join, key=key, more=more)
    inputs = change(stays, {**stays, "models/o.sql": model})
    found = seen(inputs, "unique-key-no-audit")
    assert [item.severity for item in found] == ([] if severity is None else [severity])
    assert all(("may give several rows" in item.evidence) == (severity == "high") for item in found)
