"""Settings of the stored table: batches, guards, layout and merges."""

from __future__ import annotations

import pytest

from ci_bot.protocol.plan import Finding
from tests.unit.rules.world import change, seen

QUERY = "SELECT o.order_id, o.status, o.order_ts, CAST(o.order_ts AS DATE) AS day FROM raw.orders o"
INTERVAL = " WHERE CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds"
DAY = "kind INCREMENTAL_BY_TIME_RANGE (time_column day{})"
KEY = "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id{})"
HISTORY = "kind SCD_TYPE_2_BY_TIME (unique_key order_id, updated_at_name order_ts{})"
WATCHED = "kind SCD_TYPE_2_BY_COLUMN (unique_key order_id, columns {})"


def findings(rule: str, before: str, after: str, statement: str = "") -> list[Finding]:
    """The findings on another MODEL block, with a statement that comes behind the query."""

    def model(block: str, behind: str = "") -> dict[str, str]:
        interval = INTERVAL if "TIME_RANGE" in block else ""
        return {"models/m.sql": f"MODEL (name mart.m, {block});\n{QUERY}{interval}{behind}"}

    behind = f";\n{statement};" if statement else ""
    return seen(change(model(before), model(after, behind)), rule)


def told(rule: str, before: str, after: str) -> list[str]:
    return [found.evidence for found in findings(rule, before, after)]


def assert_says(found: list[str], says: str | None) -> None:
    """One finding with these words; none where there are none."""
    assert len(found) == (says is not None), found
    assert says is None or says in found[0]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (", batch_size 30", "", "from 30 to none"),
        (", batch_size 30", ", batch_size 300", "from 30 to 300"),
        (", batch_size 30", ", batch_size 90", None),
        ("", ", batch_size 30", None),
    ],
)
def test_batches(before: str, after: str, says: str | None) -> None:
    found = told("batch-size-removed", DAY.format(before), DAY.format(after))
    assert_says(found, says)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (", on_destructive_change error", ", on_destructive_change allow", "destructive_change al"),
        (", on_additive_change error", ", on_additive_change ignore", "on_additive_change ignore"),
        (", disable_restatement true", ", disable_restatement false", "disable_restatement false"),
        (", disable_restatement false", ", disable_restatement true", "disable_restatement true"),
        ("", ", auto_restatement_cron '@weekly'", "auto_restatement_cron"),
        ("", ", forward_only true", "history keeps the old logic"),
        (", forward_only true", "", "builds all of history again"),
        (", on_destructive_change allow", ", on_destructive_change error", None),
        (", auto_restatement_cron '@weekly'", "", None),
    ],
)
def test_guards__of_the_kind(before: str, after: str, says: str | None) -> None:
    found = told("guard-removed", DAY.format(before), DAY.format(after))
    assert_says(found, says)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("", ", allow_partials true", "incomplete intervals are published"),
        ("", ", physical_version '7'", "an existing table is used"),
        (", allow_partials true", "", None),
        (", physical_version '7'", ", physical_version '7', owner shop", None),
    ],
)
def test_guards__of_the_model(before: str, after: str, says: str | None) -> None:
    block = DAY.format("")
    found = told("guard-removed", f"{block}{before}", f"{block}{after}")
    assert_says(found, says)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("", ", partitioned_by (status)", "partitioned_by"),
        ("", ", storage_format orc", "storage_format"),
        ("", ", table_format iceberg", "table_format"),
        ("", ", clustered_by (status)", "clustered_by"),
        (", clustered_by (status)", "", "clustered_by none"),
        (", partitioned_by (status, day)", ", partitioned_by (day, status)", None),
        (", partitioned_by (days(day))", ", partitioned_by (months(day))", "partitioned_by"),
    ],
)
def test_layout(before: str, after: str, says: str | None) -> None:
    found = told("table-layout-changed", f"kind FULL{before}", f"kind FULL{after}")
    assert_says(found, says)


def test_layout__of_a_kind_that_replaces_partitions__says_which_rows_go() -> None:
    kind = "kind INCREMENTAL_BY_PARTITION, partitioned_by ({})"
    found = told("table-layout-changed", kind.format("status"), kind.format("day"))
    assert "A run now replaces other rows" in found[0]


@pytest.mark.parametrize(
    ("parts", "stays"),
    [
        ("(day, status)", "status"),
        ("(status, day)", "status"),
        ("(day, BUCKET(16, order_id))", "order_id"),
        ("(day, TRUNCATE(2, status))", "status"),
        ("(day, order_ts)", None),
        ("(day)", None),
    ],
)
def test_layout__beside_the_time__leaves_rows_where_they_were(
    parts: str, stays: str | None
) -> None:
    block = DAY.format("")
    found = findings("table-layout-changed", block, f"{block}, partitioned_by {parts}")
    says = [item for item in found if "stays in its old partition" in item.evidence]
    assert [item.severity for item in says] == (["high"] if stays else [])
    assert all(f"another `{stays}`" in item.evidence for item in says)


def test_layout__beside_the_time_of_a_forward_only_table() -> None:
    block = DAY.format(", forward_only true")
    found = findings("table-layout-changed", block, f"{block}, partitioned_by (day, status)")
    assert [item.severity for item in found] == ["medium"]


def test_layout__of_a_forward_only_table__keeps_the_old_files() -> None:
    kind = f"{DAY.format(', forward_only true')}, storage_format {{}}"
    found = told("table-layout-changed", kind.format("parquet"), kind.format("orc"))
    assert "keeps its old layout until someone rebuilds it" in found[0]


@pytest.mark.parametrize(
    ("storage", "severity"), [("csv", "high"), ("JSON", "high"), ("orc", "medium")]
)
def test_layout__of_text_files_does_not_keep_all_values(storage: str, severity: str) -> None:
    found = findings("table-layout-changed", "kind FULL", f"kind FULL, storage_format {storage}")
    assert [item.severity for item in found] == [severity]
    assert ("do not keep all values" in found[0].evidence) == (severity == "high")


def property_changes(before: str, after: str, statement: str = "") -> list[str]:
    block = "kind FULL, table_format iceberg{}"
    old, new = (
        block.format(f", physical_properties ({text})" if text else "") for text in (before, after)
    )
    return [
        f"{item.severity}: {item.evidence}"
        for item in findings("table-property-changed", old, new, statement)
    ]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("", "'delta.deletedFileRetentionDuration' = 'interval 0 hours'", "sooner"),
        ("", "'delta.logRetentionDuration' = 'interval 7 days'", "sooner"),
        ("'history.expire.min-snapshots-to-keep' = '50'", "", "sooner"),
        ("", "'delta.feature.clustering' = 'supported'", "not be able to read"),
        ("'delta.enableChangeDataFeed' = 'true'", "", "change feed"),
        ("'delta.appendOnly' = 'true'", "'delta.appendOnly' = 'false'", "refused"),
        ("", "'write.merge.isolation-level' = 'snapshot'", "two writers"),
        ("", "'write.data.path' = 's3://elsewhere/x'", "another place"),
        ("", "'external.table.purge' = 'true'", "deleted with the table"),
        ("", "'format-version' = '3'", "not be able to read"),
    ],
)
def test_property__that_changes_more_than_speed(before: str, after: str, says: str) -> None:
    (found,) = property_changes(before, after)
    assert found.startswith("high: ")
    assert says in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "'delta.deletedFileRetentionDuration' = 'interval 30 days'"),
        ("", "'delta.deletedFileRetentionDuration' = 'interval 168 hours'"),
        ("", "'history.expire.max-snapshot-age-ms' = '864000000'"),
        ("", "'delta.enableChangeDataFeed' = 'true'"),
        ("", "'write.merge.isolation-level' = 'serializable'"),
        ("", "'write.target-file-size-bytes' = '134217728', 'write.parquet.compression-codec' = 'zstd'"),
        ("", "'team' = 'shop'"),
        ("'format-version' = '2'", "'format-version' = '2', 'a' = 'b'"),
    ],
)  # fmt: skip
def test_property__of_speed_or_of_more_history_is_quiet(before: str, after: str) -> None:
    assert property_changes(before, after) == []


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("ALTER TABLE @this_model SET TBLPROPERTIES ('gc.enabled' = 'true', 'format-version'='1')", 1),
        ("ALTER TABLE @this_model SET TBLPROPERTIES (delta.appendOnly = true)", 1),
        ("ALTER TABLE @this_model SET TBLPROPERTIES ('a' = 'format-version')", 0),
    ],
)  # fmt: skip
def test_property__that_a_statement_sets(statement: str, says: int) -> None:
    assert len(property_changes("", "", statement)) == says


def test_property__that_a_statement_unsets_has_its_default() -> None:
    unset = "ALTER TABLE @this_model UNSET TBLPROPERTIES IF EXISTS ('delta.appendOnly')"
    block = "'delta.appendOnly' = 'true'"
    (found,) = property_changes(block, block, unset)
    assert "`delta.appendOnly` from true to its default" in found
    assert property_changes("", "", unset) == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            KEY.format(", when_matched (WHEN MATCHED THEN UPDATE SET target.status = 'a')"),
            KEY.format(", when_matched (WHEN MATCHED THEN UPDATE SET target.status = 'b')"),
            "when_matched",
        ),
        (KEY.format(""), KEY.format(", merge_filter source.order_id > 5"), "merge_filter"),
        (
            HISTORY.format(""),
            HISTORY.format(", invalidate_hard_deletes true"),
            "invalidate_hard_deletes",
        ),
        (WATCHED.format("[status]"), WATCHED.format("[status, day]"), "columns"),
        (WATCHED.format("[status]"), WATCHED.format("*"), "columns"),
        (WATCHED.format("[status, day]"), WATCHED.format("[day, status]"), None),
    ],
)
def test_merges(before: str, after: str, says: str | None) -> None:
    found = told("merge-logic-changed", before, after)
    assert_says(found, says)


@pytest.mark.parametrize(
    ("properties", "statement"),
    [
        ("physical_properties ('write.data.path' = 's3://lake/m')", ""),
        ("physical_properties (location = 's3://lake/m')", ""),
        ("table_format \"iceberg LOCATION 's3://lake/m'\"", ""),
        ("owner shop", "ALTER TABLE @this_model SET LOCATION 's3://lake/m';\n"),
        (
            "owner shop",
            "ALTER TABLE @this_model SET TBLPROPERTIES ('write.folder-storage.path' = 'x');\n",
        ),
    ],
)
def test_place__that_is_fixed_is_one_for_all_versions(properties: str, statement: str) -> None:
    head = "MODEL (name mart.m, kind FULL{0});\n"
    query = "SELECT o.order_id FROM raw.orders AS o"
    inputs = change(
        {"models/m.sql": head.format("") + query},
        {"models/m.sql": head.format(f", {properties}") + statement + query},
    )
    found = seen(inputs, "destructive-statement")
    assert found
    assert found[0].severity == "blocker"
    assert "all versions of the model, those of prod and of every environment" in found[0].evidence


@pytest.mark.parametrize(
    "properties",
    [
        "physical_properties ('write.format.default' = 'orc')",
        "physical_properties ('write.distribution-mode' = 'hash')",
        "table_format iceberg, storage_format orc",
    ],
)
def test_place__is_none_of_what_a_property_says_otherwise(properties: str) -> None:
    head = "MODEL (name mart.m, kind FULL{0});\n"
    query = "SELECT o.order_id FROM raw.orders AS o"
    inputs = change(
        {"models/m.sql": head.format("") + query},
        {"models/m.sql": head.format(f", {properties}") + query},
    )
    assert seen(inputs, "destructive-statement") == []
