"""Event logs: which table was written, which range, at what cost; and logs that are of no use."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlmesh.core.config.connection import DuckDBConnectionConfig

from ci_bot.errors import BadInput
from ci_bot.worker.cost.event_log_application import (
    EventLogApplication,
    find_range_written_in_event_log,
    find_table_written_in_event_log,
)
from ci_bot.worker.cost.event_logs import (
    EventLogPorts,
    LearnedLogs,
    LocalEventLogFiles,
    get_local_path_of_event_logs,
    is_compressed_event_log,
    learn_costs_from_event_logs,
    learn_event_logs_into_ledger,
    list_event_logs,
)
from ci_bot.worker.runtime.process import WorkerPhaseClock
from ci_bot.worker.state_store.cost_ledger import CostLedger
from tests.unit.cost.event_logs import NODE, TABLE, audit, begin, executor, finish, log, statement


def application(content: bytes) -> EventLogApplication:
    made = EventLogApplication()
    made.read_lines(content.splitlines(keepends=True))
    return made


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (NODE, "file:/wh/sqlmesh__shop.db/shop__orders__123456, false, Parquet"),
        (NODE, "s3a://lake/sqlmesh__shop.db/shop__orders__123456, false"),
        (
            "Execute InsertIntoHiveTable",
            "`spark_catalog`.`sqlmesh__shop`.`shop__orders__123456`, org.apache.hadoop",
        ),
        (
            "Execute CreateDataSourceTableAsSelectCommand",
            "`spark_catalog`.`sqlmesh__shop`.`shop__orders__123456`, Overwrite, [id]",
        ),
        ("AppendData", "AppendData IcebergWrite(table=lake.sqlmesh__shop.shop__orders__123456)"),
        ("OverwritePartitionsDynamic", "org.x, lake.sqlmesh__shop.shop__orders__123456"),
        (
            "ReplaceData",
            "IcebergWrite(table=lake.SQLMESH__shop.shop__orders__123456, format=PARQUET)",
        ),
    ],
)
def test_written_table__is_found_in_every_kind_of_write(node: str, text: str) -> None:
    leaf = {"nodeName": node, "simpleString": f"{node} {text}", "children": []}
    assert (
        find_table_written_in_event_log({"nodeName": "AdaptiveSparkPlan", "children": [leaf]})
        == TABLE
    )


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("Scan parquet ", "spark_catalog.sqlmesh__shop.shop__orders__123456"),
        (NODE, "file:/wh/raw.db/orders, false"),
        (NODE, "`spark_catalog`.`raw`.`orders_2024`"),
        ("Execute CreateViewCommand", "`sqlmesh__shop`.`shop__orders__123456`"),
    ],
)
def test_written_table__is_none_of_reads_views_and_other_tables(node: str, text: str) -> None:
    assert find_table_written_in_event_log({"nodeName": node, "simpleString": text}) is None


def day(number: int, month: int = 1) -> datetime:
    return datetime(2024, month, number, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("Condition : ((d#1 >= 2024-01-01) AND (d#1 <= 2024-01-31))", (day(1), day(1, 2))),
        ("Condition : ((d#1 >= 2024-01-01) AND (d#1 < 2024-01-31))", (day(1), day(31))),
        (
            "Condition : ((t#1 >= 2024-01-01 00:00:00) AND (t#1 <= 2024-01-01 23:59:59.999999))",
            (day(1), day(2)),
        ),
        (
            "Condition : ((cast(d#1 as date) >= cast('2024-01-01' as date)) "
            "AND (cast(d#1 as date) <= cast('2024-01-02' as date)))",
            (day(1), day(3)),
        ),
        # The query reads a week more for itself; the bounds of the batch are the narrower ones.
        (
            "Condition : ((d#1 >= 2023-12-25) AND (d#1 <= 2024-01-01))\n"
            "Condition : ((d#9 >= 2024-01-01) AND (d#9 <= 2024-01-01))",
            (day(1), day(2)),
        ),
        ("Condition : (d#1 >= 2024-01-01)", None),
        ("Condition : ((n#1 >= 5) AND (n#1 <= 10))", None),
        ("Condition : ((d#1 >= 2024-02-01) AND (d#1 <= 2024-01-01))", None),
        ("Condition : ((d#1 >= 2024-99-99) AND (d#1 <= 2024-99-99))", None),
        ("", None),
    ],
)
def test_written_range__is_the_batchs(text: str, span: object) -> None:
    assert find_range_written_in_event_log(text) == span


@given(st.text())
def test_written_range__of_any_text_ends_well(text: str) -> None:
    find_range_written_in_event_log(text)
    find_range_written_in_event_log(f"(d#1 >= {text}) AND (d#1 <= {text})")


def test_application__tells_what_a_write_cost() -> None:
    made = application(log(begin(), statement(1, 100, 110), finish()))
    assert (made.spark, made.id, made.ended, made.cut) == ("3.5.9", "app-1", True, False)
    (write,) = made.list_writes()
    assert (write.table, write.executor_seconds) == (TABLE, 10)
    assert write.span == (day(1), day(6))
    assert (write.counters.used_seconds, write.counters.input_bytes) == (2.0, 500)
    assert write.counters.output_rows == 7


def test_application__knows_executors_that_come_and_go() -> None:
    gone = '{"Event":"SparkListenerExecutorRemoved","Timestamp":105000,"Executor ID":"2"}'
    made = application(
        log(begin(), [executor("2", 100, 4)], statement(1, 100, 110), [gone], finish())
    )
    assert made.list_writes()[0].executor_seconds == 15


def test_application__an_audit_right_after_belongs_to_the_write() -> None:
    made = application(log(begin(), audit(1, 50, 60), statement(2, 100, 110), audit(3, 110, 113)))
    (write,) = made.list_writes()
    assert (write.executor_seconds, write.counters.input_bytes) == (13, 550)


def test_application__the_pause_before_a_statement_is_the_statements() -> None:
    """As an apply is charged: from the begin of a batch, when its query is rendered and planned."""
    made = application(
        log(begin(), statement(1, 100, 110), statement(2, 113, 120), statement(3, 115, 119))
    )
    first, second, third = made.list_writes()
    assert first.executor_seconds == 10
    # The third began while the second ran, and they share what was occupied then.
    assert second.executor_seconds + third.executor_seconds == pytest.approx(10)


def test_application__a_long_pause_is_nobodys() -> None:
    made = application(log(begin(), statement(1, 100, 110), statement(2, 200, 210)))
    assert [write.executor_seconds for write in made.list_writes()] == [10, 10]


def test_application__leaves_out_the_making_of_an_empty_table() -> None:
    # CREATE TABLE AS SELECT ... LIMIT 0: it would be the cheapest run that a FULL model ever had.
    empty = statement(1, 100, 101, plan="", read=0, written=0)
    made = application(log(begin(), empty, statement(2, 200, 210), finish()))
    assert [write.start for write in made.list_writes()] == [200]


def test_application__leaves_out_what_never_ended() -> None:
    made = application(log(begin(), statement(1, 100, None), statement(2, 200, 210)))
    assert [write.start for write in made.list_writes()] == [200]


CONTENT = log(begin(), statement(1, 100, 110), statement(2, 200, 220), audit(3, 220, 221), finish())


@given(st.integers(0, len(CONTENT)))
def test_application__cut_anywhere_tells_only_of_whole_writes(length: int) -> None:
    whole = {write.start: write for write in application(CONTENT).list_writes()}
    for write in application(CONTENT[:length]).list_writes():
        assert write.executor_seconds <= whole[write.start].executor_seconds
        assert write.span == whole[write.start].span


@pytest.fixture
def ledger() -> Iterator[CostLedger]:
    adapter: Any = DuckDBConnectionConfig(database=":memory:").create_engine_adapter()
    made = CostLedger(adapter)
    made.prepare_tables()
    yield made
    adapter.close()


def never(path: str) -> AbstractContextManager[str]:
    raise AssertionError(path)


NOW = 2_000_000_000.0


def learned(directory: Path, ledger: CostLedger, *, now: float = NOW) -> LearnedLogs:
    for path in directory.rglob("*"):
        os.utime(path, (NOW - 60, NOW - 60))
    return learn_costs_from_event_logs(LocalEventLogFiles(never), str(directory), ledger, now=now)


def write_logs(directory: Path) -> None:
    """One of each sort."""
    (directory / "good").write_bytes(log(begin(), statement(1, NOW - 90, NOW - 80), finish()))
    (directory / "cut").write_bytes(
        log(begin(), statement(1, NOW - 90, NOW - 80)) + b'{"Event":"SparkListenerJobSta'
    )
    (directory / "foreign").write_bytes(
        log(begin(), statement(1, NOW - 90, NOW - 80, text="file:/wh/raw.db/orders"), finish())
    )
    for version in ("2.4.8", "3.3.4", "4.2.0", "main"):
        content = log(begin(version), statement(1, NOW - 90, NOW - 80), finish())
        (directory / f"of-{version}").write_bytes(content)
    for version in ("3.5.1-amzn-0", "4.0.1", "4.1.4"):
        content = log(begin(version), statement(1, NOW - 90, NOW - 80), finish())
        (directory / f"of-{version}").write_bytes(content)
    (directory / "a-picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    (directory / "empty").write_bytes(b"")
    (directory / ".hidden").write_bytes(b"{}")


def test_learn__counts_what_is_of_no_use_and_reads_the_rest(
    tmp_path: Path, ledger: CostLedger
) -> None:
    write_logs(tmp_path)
    found = learned(tmp_path, ledger)
    assert found.counts == Counter(
        logs=12, read=5, foreign=1, other_version=4, cut=1, unreadable=2, writes=5
    )
    assert {row.source for row in ledger.list_prod_runs([TABLE])} == {
        "good",
        "cut",
        "of-3.5.1-amzn-0",
        "of-4.0.1",
        "of-4.1.4",
    }
    # Once each, whatever they were.
    again = learned(tmp_path, ledger)
    assert (again.counts["known"], again.counts["writes"]) == (12, 0)
    assert len(ledger.list_prod_runs([TABLE])) == 5


def test_learn__of_a_running_application_is_replaced_when_it_ends(
    tmp_path: Path, ledger: CostLedger
) -> None:
    running = tmp_path / "app.inprogress"
    running.write_bytes(log(begin(), statement(1, NOW - 90, NOW - 80)))
    for _ in range(2):
        assert learned(tmp_path, ledger).counts["cut"] == 0
        assert len(ledger.list_prod_runs([TABLE])) == 1
    running.unlink()
    more = log(
        begin(), statement(1, NOW - 90, NOW - 80), statement(2, NOW - 70, NOW - 65), finish()
    )
    (tmp_path / "app").write_bytes(more)
    learned(tmp_path, ledger)
    assert {row.source for row in ledger.list_prod_runs([TABLE])} == {"app"}
    assert len(ledger.list_prod_runs([TABLE])) == 2


def test_learn__reads_the_parts_of_a_rolling_log_in_order(
    tmp_path: Path, ledger: CostLedger
) -> None:
    rolling = tmp_path / "eventlog_v2_app-1"
    rolling.mkdir()
    (rolling / "appstatus_app-1").write_bytes(b"")
    first, second = statement(1, NOW - 90, NOW - 80), statement(2, NOW - 70, NOW - 65)
    # A job that begins in one part ends in the next; and what was compacted is not read twice.
    (rolling / "events_1_app-1").write_bytes(b"compacted already")
    (rolling / "events_2_app-1.compact").write_bytes(log(begin(), first[:2]))
    (rolling / "events_3_app-1").write_bytes(log(first[2:]))
    (rolling / "events_10_app-1").write_bytes(log(second, finish()))
    found = learned(tmp_path, ledger)
    assert (found.counts["read"], found.counts["writes"], found.counts["cut"]) == (1, 2, 0)
    assert [
        part.name
        for entry in list_event_logs(LocalEventLogFiles(never), str(tmp_path))
        for part in entry.parts
    ] == [
        "events_2_app-1.compact",
        "events_3_app-1",
        "events_10_app-1",
    ]


def test_learn__leaves_old_logs_alone(tmp_path: Path, ledger: CostLedger) -> None:
    (tmp_path / "good").write_bytes(log(begin(), statement(1, 100, 110), finish()))
    found = learned(tmp_path, ledger, now=NOW + 400 * 86_400)
    assert (found.counts["old"], found.counts["writes"]) == (1, 0)


def test_learn__keeps_no_word_of_the_environment(tmp_path: Path, ledger: CostLedger) -> None:
    (tmp_path / "good").write_bytes(log(begin(), statement(1, NOW - 90, NOW - 80), finish()))
    learned(tmp_path, ledger)
    assert all("hunter2" not in row.to_json() for row in ledger.list_prod_runs([TABLE]))


PORTS = EventLogPorts(
    WorkerPhaseClock(), lambda _phase, _message: None, lambda: None, lambda: False
)


def test_learn__of_a_directory_that_is_not_there_is_one_sentence(
    tmp_path: Path, ledger: CostLedger
) -> None:
    with pytest.raises(BadInput, match=r"cannot be read: it is not there\.$"):
        learn_event_logs_into_ledger(ledger, str(tmp_path / "none"), {}, PORTS)
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="it is no directory"):
        learn_event_logs_into_ledger(ledger, f"file://{tmp_path}/file", {}, PORTS)


class Closed(LocalEventLogFiles):
    """A directory that may not be read. (A test that runs as root cannot make one.)"""

    def list_entries(self, path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)


def test_learn__without_permission_says_so(ledger: CostLedger) -> None:
    with pytest.raises(PermissionError) as raised:
        learn_costs_from_event_logs(Closed(never), "/logs", ledger, now=NOW)
    from ci_bot.worker.cost.event_logs import make_unreadable_event_logs_error

    assert (
        "reading it is not permitted"
        in make_unreadable_event_logs_error("/logs", raised.value).message
    )


@pytest.mark.parametrize(
    ("directory", "path"),
    [
        ("/logs", "/logs"),
        ("logs", "logs"),
        ("file:///logs", "/logs"),
        ("file:/logs", "/logs"),
        ("s3a://bucket/logs", None),
        ("hdfs://name:8020/logs", None),
    ],
)
def test_local_path__is_of_this_machine(directory: str, path: str | None) -> None:
    assert get_local_path_of_event_logs(directory) == path


@pytest.mark.parametrize(
    ("name", "compressed"),
    [
        ("app-1", False),
        ("app-1.inprogress", False),
        ("app-1.zstd", True),
        ("app-1.lz4.inprogress", True),
        ("events_1_app.snappy", True),
        ("events_1_app.zstd.compact", True),
    ],
)
def test_is_compressed__by_the_name_that_spark_gives(name: str, compressed: bool) -> None:
    assert is_compressed_event_log(name) == compressed
