"""Statements that write prod, on real Spark: an apply refuses them, and prod's rows stay.

One JVM for all of them; each refusal comes before anything is built.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import ApplyRequest, FailedAnswer
from tests.conftest import PROD_UNTIL
from tests.one_jvm import OneJvm, one_jvm
from tests.projects import Shop, write_shop

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.own_jvm]

LOGGING = "INSERT INTO ops.log SELECT 'revenue'"
ROW = "99 AS order_id, 99 AS customer_id, 1 AS amount, DATE '2024-01-01' AS order_date"
TOTALS = "CAST(SUM(o.amount) AS BIGINT) AS revenue"


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, java: None) -> Iterator[OneJvm]:
    """A shop with prod built, one model of which keeps a log in a table of its own."""
    shop = write_shop(tmp_path_factory.mktemp("statements-shop"))
    revenue = (shop.project / "models/revenue.sql").read_text(encoding="utf-8")
    shop.write("models/revenue.sql", f"{revenue.rstrip()};\n\n{LOGGING};\n")
    with one_jvm(shop) as made:
        made.sql("CREATE DATABASE ops", "CREATE TABLE ops.log (model STRING) USING parquet")
        made.plan_prod(PROD_UNTIL)
        made.apply_prod()
        yield made


@pytest.fixture(scope="module")
def rows_of_prod(jvm: OneJvm) -> list[list[list[str]]]:
    return prod(jvm)


@pytest.fixture
def shop(jvm: OneJvm, rows_of_prod: list[list[list[str]]]) -> Iterator[Shop]:
    """Its files as on the main branch, before and after the test; prod's rows are compared."""
    files = [*(jvm.shop.project / "models").iterdir(), jvm.shop.project / "config.yaml"]
    before = {path: path.read_bytes() for path in files}
    yield jvm.shop
    for path, content in before.items():
        path.write_bytes(content)
    assert prod(jvm) == rows_of_prod


def prod(jvm: OneJvm) -> list[list[list[str]]]:
    """Prod's rows, its views, and the physical tables that there are."""
    return jvm.sql(
        "SELECT * FROM shop.orders ORDER BY ALL",
        "SELECT customer_id, revenue FROM shop.revenue ORDER BY ALL",
        "SHOW TABLES IN shop",
        "SHOW TABLES IN sqlmesh__shop",
        "SHOW TABLES IN ops",
    )


def table_of_orders(jvm: OneJvm) -> str:
    (tables,) = jvm.sql("SHOW TABLES IN sqlmesh__shop")
    (name,) = (row[1] for row in tables if row[1].startswith("shop__orders__"))
    return f"sqlmesh__shop.{name}"


def files_of_orders(jvm: OneJvm) -> str:
    (rows,) = jvm.sql(f"DESCRIBE EXTENDED {table_of_orders(jvm)}")
    (location,) = (row[1] for row in rows if row[0] == "Location")
    return location.removeprefix("file:")


def refused(jvm: OneJvm) -> Failure:
    answer = jvm.ask(ApplyRequest(environment="pr_5", **jvm._place("pr_5")))
    assert isinstance(answer, FailedAnswer), answer
    assert not any(told.startswith(("apply", "lease")) for told in jvm.progress)
    assert answer.failure.exit_code == 3
    return answer.failure


# Each of these changed prod's rows, or brought a program into Spark, after a review that said Go.
WRITES = {
    "with": f"WITH x AS (SELECT {ROW}) INSERT INTO {{t}} SELECT * FROM x",
    "the word temp": "INSERT INTO {t} SELECT 99, 99, LENGTH('temp '), DATE '2024-01-01'",
    "temporary name": "DROP TABLE shop.temporary",
    "jinja": f"JINJA_STATEMENT_BEGIN;\nINSERT INTO {{t}} SELECT {ROW};\nJINJA_END",
    "if": f"@IF(1 = 1, INSERT INTO {{t}} SELECT {ROW})",
    "stage": f"@IF(@runtime_stage = 'evaluating', INSERT INTO {{t}} SELECT {ROW})",
    "load data": "LOAD DATA INPATH '/nowhere' OVERWRITE INTO TABLE {t}",
    "virtual update": "ON_VIRTUAL_UPDATE_BEGIN;\nWITH x AS (SELECT 1) INSERT INTO {t} SELECT * "
    "FROM x;\nON_VIRTUAL_UPDATE_END",
    "view over its files": "CREATE TEMPORARY VIEW v USING parquet OPTIONS ('path' = '{f}')",
    "its files": "INSERT OVERWRITE DIRECTORY '{f}' STORED AS PARQUET SELECT 1",
    "its location": "ALTER TABLE @this_model SET LOCATION '{f}'",
}


@pytest.mark.parametrize("name", sorted(WRITES))
@pytest.mark.by_day(3)
def test_post_statement__that_writes_prod_is_refused(jvm: OneJvm, shop: Shop, name: str) -> None:
    statement = WRITES[name].format(t=table_of_orders(jvm), f=files_of_orders(jvm))
    shop.edit("models/revenue.sql", f"{LOGGING};", f"{LOGGING};\n\n{statement};")

    failure = refused(jvm)

    assert failure.reason_code in ("writes_elsewhere", "unknown_statement")
    assert "shop.revenue" in failure.message
    assert "is new or changed" in failure.message


@pytest.mark.parametrize(
    "edit",
    [
        (f"{LOGGING};", f"{LOGGING};\n\nADD JAR /x.jar;"),
        (f"{LOGGING};", f"{LOGGING};\n\nCREATE TEMPORARY FUNCTION f AS 'org.acme.F';"),
        (TOTALS, f"{TOTALS},\n  java_method('java.lang.System', 'getenv', 'HOME') AS home"),
    ],
)
def test_program_in_sql__is_refused(jvm: OneJvm, shop: Shop, edit: tuple[str, str]) -> None:
    shop.edit("models/revenue.sql", *edit)

    assert refused(jvm).reason_code == "loads_code"


@pytest.mark.parametrize("slot", ["before_all", "after_all"])
def test_statement_around_the_plan__is_refused(jvm: OneJvm, shop: Shop, slot: str) -> None:
    config = (shop.project / "config.yaml").read_text(encoding="utf-8")
    sql = f"/* x */ WITH x AS (SELECT {ROW}) INSERT INTO {table_of_orders(jvm)} SELECT * FROM x"
    shop.write("config.yaml", f'{config}\n{slot}:\n  - "{sql}"\n')

    failure = refused(jvm)

    assert failure.reason_code == "writes_elsewhere"
    assert slot in failure.message
    assert table_of_orders(jvm) in failure.message


@pytest.mark.parametrize("where", ["property", "format"])
def test_properties__that_lead_to_prods_files_are_refused(
    jvm: OneJvm, shop: Shop, where: str
) -> None:
    # SQLMesh writes both into its CREATE TABLE as they are; the first build would empty prod.
    files = files_of_orders(jvm)
    octal = "".join(f"\\\\{ord(letter):03o}" for letter in files)
    odd = {
        "property": f"physical_properties (\"a'='b') LOCATION '{files}' OPTIONS('x\" = 'y')",
        "format": f"storage_format \"PARQUET LOCATION '{octal}'\"",
    }[where]
    shop.edit("models/revenue.sql", "grain customer_id,", f"grain customer_id,\n  {odd},")

    assert refused(jvm).reason_code == "unknown_statement"


@pytest.mark.night
def test_statement_that_prod_has_too__is_no_reason_to_refuse(jvm: OneJvm, shop: Shop) -> None:
    shop.edit("models/revenue.sql", TOTALS, f"{TOTALS},\n  CAST(1 AS INT) AS one")
    logged = jvm.sql("SELECT COUNT(*) FROM ops.log")

    applied = jvm.apply("pr_6")

    assert applied.failure is None
    assert applied.result == "applied"
    assert jvm.sql("SELECT COUNT(*) FROM ops.log") != logged
    assert jvm.cleanup("pr_6", reclaim="always").result == "removed"


@pytest.mark.night
def test_own_table__may_be_described(jvm: OneJvm, shop: Shop) -> None:
    describe = "@IF(@runtime_stage = 'evaluating', ANALYZE TABLE @this_model COMPUTE STATISTICS)"
    shop.edit("models/revenue.sql", f"{LOGGING};", f"{LOGGING};\n\n{describe};")

    assert jvm.apply("pr_7").result == "applied"
    assert jvm.cleanup("pr_7", reclaim="always").result == "removed"


KEYED = """\
MODEL (
  name shop.latest,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key order_id, batch_size 1),
  start '2024-01-01',
  grain order_id,
  audits (unique_values(columns := (order_id)))
);

SELECT o.order_id, o.amount, o.order_date FROM shop.orders AS o
WHERE o.order_date BETWEEN @start_ds AND @end_ds
"""


def test_merge__into_a_table_without_merge_is_refused(jvm: OneJvm, shop: Shop) -> None:
    try:
        shop.write("models/latest.sql", KEYED)

        failure = refused(jvm)
    finally:
        (shop.project / "models/latest.sql").unlink()

    assert failure.reason_code == "merge_unsupported"
    assert "shop.latest" in failure.message
    assert "Spark cannot MERGE into a table of the format `parquet`" in failure.message


def test_load_data__into_the_own_table_is_refused(jvm: OneJvm, shop: Shop) -> None:
    statement = "LOAD DATA INPATH '/nowhere/a.parquet' INTO TABLE @this_model"
    shop.edit("models/revenue.sql", f"{LOGGING};", f"{LOGGING};\n\n{statement};")

    assert refused(jvm).reason_code == "writes_elsewhere"


def test_setting__that_spark_refuses_is_refused_before(jvm: OneJvm, shop: Shop) -> None:
    shop.edit(
        "models/revenue.sql", f"{LOGGING};", f"{LOGGING};\n\nSET spark.sql.ansi.enabled = true;"
    )

    failure = refused(jvm)

    assert failure.reason_code == "statement_fails"
    assert "SET `spark.sql.ansi.enabled` = TRUE" in failure.message


def test_audit__that_cannot_run_is_named_with_its_file(jvm: OneJvm, shop: Shop) -> None:
    # The function is none that Spark has; columns that are not there are found in the review.
    shop.edit("models/revenue.sql", "audits (not_null(", "audits (no_debts, not_null(")
    shop.write(
        "audits/no_debts.sql",
        "-- a comment\nAUDIT (name no_debts);\nSELECT * FROM @this_model WHERE acme_check(revenue)\n",
    )
    try:
        answer = jvm.ask(ApplyRequest(environment="pr_5", **jvm._place("pr_5")))
    finally:
        (jvm.shop.project / "audits/no_debts.sql").unlink()

    assert isinstance(answer, ApplyDocument), answer
    assert answer.failure is not None
    assert answer.failure.message.startswith("The audit `no_debts` cannot run: ")
    assert (answer.failure.path, answer.failure.line) == ("audits/no_debts.sql", 2)
    assert answer.failure.model == "shop.revenue"
