"""What settings of Spark change, and what a statement that sets one does."""

from __future__ import annotations

import pytest

from ci_bot.worker.sql_effects.effects import SqlEffect
from ci_bot.worker.sql_effects.read_statement import list_statement_effects
from ci_bot.worker.sql_effects.spark_settings import (
    find_effect_of_setting,
    find_setting_spelling,
    is_start_setting,
)

VALUES = [
    "spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.legacy.timeParserPolicy",
    "spark.sql.legacy.sizeOfNull", "spark.sql.caseSensitive", "spark.sql.storeAssignmentPolicy",
    "spark.sql.mapKeyDedupPolicy", "spark.sql.timestampType", "spark.sql.groupByOrdinal",
    "spark.sql.decimalOperations.allowPrecisionLoss", "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles", "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.binaryAsString", "spark.sql.parquet.mergeSchema",
    "spark.sql.avro.datetimeRebaseModeInWrite", "spark.sql.jsonGenerator.ignoreNullFields",
    "spark.sql.execution.pandas.convertToArrowArraySafely", "spark.sql.optimizer.metadataOnly",
    "spark.sql.execution.pythonUDF.arrow.enabled", "spark.sql.hive.convertMetastoreParquet",
    "spark.sql.sources.partitionColumnTypeInference.enabled", "spark.sql.readSideCharPadding",
    "spark.sql.iceberg.handle-timestamp-without-timezone", "spark.sql.parser.escapedStringLiterals",
    "spark.databricks.delta.replaceWhere.constraintCheck.enabled", "hoodie.datasource.write.operation",
    "mapreduce.input.fileinputformat.input.dir.recursive",
]  # fmt: skip
HARMLESS = [
    "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled", "spark.sql.cbo.enabled",
    "spark.sql.autoBroadcastJoinThreshold", "spark.sql.files.maxPartitionBytes",
    "spark.sql.parquet.compression.codec", "spark.sql.parquet.filterPushdown",
    "spark.sql.orc.enableVectorizedReader", "spark.sql.optimizer.maxIterations",
    "spark.sql.codegen.wholeStage", "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.broadcastTimeout", "spark.sql.crossJoin.enabled", "spark.sql.debug.maxToStringFields",
    "spark.sql.iceberg.vectorization.enabled", "spark.sql.statistics.histogram.enabled",
    "spark.executor.memory", "spark.driver.maxResultSize", "spark.dynamicAllocation.enabled",
    "spark.serializer", "spark.eventLog.dir", "spark.local.dir", "spark.app.name",
    "spark.scheduler.pool", "hive.exec.dynamic.partition.mode", "spark.yarn.queue",
    "spark.hadoop.javax.jdo.option.ConnectionPassword", "spark.sql.catalog.pg.password",
    "spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword",
]  # fmt: skip
PLACES = [
    "spark.sql.catalog.prod", "spark.sql.catalog.prod.warehouse", "spark.sql.warehouse.dir",
    "spark.sql.defaultCatalog", "spark.sql.extensions", "spark.sql.parquet.output.committer.class",
    "spark.sql.sources.commitProtocolClass", "spark.sql.hive.metastore.jars", "spark.master",
    "spark.hadoop.hive.metastore.uris", "spark.hadoop.fs.defaultFS", "fs.s3a.endpoint",
    "spark.wap.branch", "spark.jars.packages", "spark.executor.extraClassPath",
    "spark.hadoop.javax.jdo.option.ConnectionURL", "spark.sql.catalog.lake.token",
    "spark.hadoop.javax.jdo.option.ConnectionUserName", "spark.sql.catalog.pg.url",
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "meanings"),
    [
        *((key, {"values"}) for key in VALUES),
        *((key, {"speed", "nothing"}) for key in HARMLESS),
        *((key, {"places"}) for key in PLACES),
        *((key, {"unknown"}) for key in ("my.setting", "spark.acme.mode", "spark.sql.acme.mode")),
    ],
)
@pytest.mark.parametrize("spelled", [str, str.lower])
def test_meaning(key: str, meanings: set[str], spelled: type[str]) -> None:
    assert find_effect_of_setting(spelled(key)) in meanings


@pytest.mark.parametrize(
    ("key", "value", "meaning"),
    [
        ("spark.sql.sources.partitionOverwriteMode", "dynamic", "nothing"),
        ("spark.sql.sources.partitionOverwriteMode", "static", "places"),
        ("spark.driver.extraJavaOptions", "-Xss4m", "speed"),
        ("spark.driver.extraJavaOptions", "-Duser.timezone=Asia/Tokyo", "values"),
        ("spark.executor.extraJavaOptions", "-Dfile.encoding=latin1", "values"),
    ],
)
def test_meaning__that_hangs_on_the_value(key: str, value: str, meaning: str) -> None:
    assert find_effect_of_setting(key, value) == meaning


def test_spelling() -> None:
    assert find_setting_spelling("spark.sql.session.timezone") == "spark.sql.session.timeZone"
    assert (
        find_setting_spelling("spark.sql.ansi.enabled") is None
    )  # a group of keys knows no spelling
    assert find_setting_spelling("my.setting") is None


@pytest.mark.parametrize("key", ["spark.executor.memory", "spark.sql.warehouse.dir"])
def test_fixed(key: str) -> None:
    assert is_start_setting(key)


@pytest.mark.parametrize("key", ["spark.sql.ansi.enabled", "spark.scheduler.pool", "my.setting"])
def test_fixed__not(key: str) -> None:
    assert not is_start_setting(key)


# The text as the engine is given it; what SQLMesh makes of a SET is in
# tests/integration/test_settings_on_spark.py.
STATEMENTS = {
    "SET TIME ZONE 'Asia/Tokyo'": ("sets", "timeZone"),
    "SET TIME ZONE LOCAL": ("sets", "timeZone"),
    "SET TIME ZONE INTERVAL '3' HOURS": ("sets", "timeZone"),
    "SET `spark.sql.ansi.enabled` = TRUE": ("sets", "spark.sql.ansi.enabled"),
    "SET spark.sql.legacy.timeParserPolicy = LEGACY": ("sets", "timeParserPolicy"),
    "SET `spark.sql.caseSensitive` = TRUE": ("sets", "spark.sql.caseSensitive"),
    "SET `spark.sql.casesensitive` = TRUE": ("sets", "which Spark does not know"),
    "SET `spark`.`sql`.`ansi`.`enabled` = TRUE": ("fails", "SET `spark.sql.ansi.enabled` = TRUE"),
    "SET `spark`.`sql`.`session`.`timezone` = 'UTC'": ("fails", "SET TIME ZONE '...'"),
    "SET `spark`.`sql`.`shuffle`.`partitions` = 10": (
        "fails",
        "`spark.sql.shuffle.partitions` = 10",
    ),
    "SET `spark`.`sql`.`autobroadcastjointhreshold` = -1": ("fails", "the connection's `config`"),
    "SET `spark.executor.memory` = 1": ("fails", "only when it starts"),
    "SET `spark`.`sql`.`catalog`.`x` = y": ("directs", "catalog"),
    "SET `my`.`setting` = y": ("directs", "my.setting"),
    "SET `spark.sql.shuffle.partitions` = 10": ("nothing", ""),
    "SET spark.sql.ansi.enabled": ("nothing", ""),
    "SET -v": ("nothing", ""),
}


@pytest.mark.parametrize(("sql", "expected"), STATEMENTS.items())
@pytest.mark.parametrize("dialect", ["spark", "databricks"])
def test_set(sql: str, expected: tuple[str, str], dialect: str) -> None:
    (effect,) = list_statement_effects(sql, dialect)

    assert isinstance(effect, SqlEffect)
    assert effect.action == expected[0]
    assert expected[1] in effect.detail


def test_set__of_another_engine() -> None:
    assert list_statement_effects("SET TIME ZONE 'Asia/Tokyo'", "postgres")[0].action == "nothing"
