"""Who has read prod's tables: which models, which columns, and logs that are of no use."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.cli.surveys import HEADER, render_exposures_for_laptop
from ci_bot.bot.policy.exposures import read_exposures_listed_by_policy
from ci_bot.protocol.base import Versions
from ci_bot.protocol.cost import ExposuresDocument, LoggedReader
from ci_bot.worker.cost import event_logs
from ci_bot.worker.cost.event_log_reads import (
    DAYS,
    ReaderInEventLog,
    ReadersInEventLogs,
    find_readers_in_event_logs,
    join_runs_of_event_log_readers,
    list_scans_in_event_log,
    map_physical_tables,
    shorten_name_of_event_log_reader,
)
from ci_bot.worker.cost.event_logs import LocalEventLogFiles
from tests.unit.cost.event_logs import SQL, line, log, statement
from tests.unit.policy.given import policy

MODELS = {"sqlmesh__shop.shop__orders": "shop.orders"}
NOW = 2_000_000_000.0
SCAN = "FileScan parquet spark_catalog.sqlmesh__shop.shop__orders__123456[id#1,amount#2L] Batched"


def begin(name: str = "export", user: str = "etl", version: str = "3.5.9") -> list[str]:
    return [
        line("SparkListenerLogStart", **{"Spark Version": version}),
        line("SparkListenerEnvironmentUpdate", **{"Spark Properties": {"secret": "hunter2"}}),
        line("SparkListenerApplicationStart", **{"App Name": name, "User": user}),
    ]


def read(text: str = SCAN, at: float = NOW - 60, node: str = "Scan parquet ") -> list[str]:
    return statement(1, at, at + 1, node=node, text=text, plan="")


def scans(node: str, text: str) -> list[tuple[str, list[str] | None]]:
    leaf = {"nodeName": node, "simpleString": text, "children": []}
    return list(list_scans_in_event_log({"nodeName": "AdaptiveSparkPlan", "children": [leaf]}))


TABLE = "sqlmesh__shop.shop__orders"


@pytest.mark.parametrize(
    ("node", "text", "columns"),
    [
        ("Scan parquet ", SCAN, ["id", "amount"]),
        (
            "Scan hive spark_catalog.sqlmesh__shop.shop__orders__123456",
            "Scan hive spark_catalog.sqlmesh__shop.shop__orders__123456 [Id#1, amount#2], "
            "HiveTableRelation [`spark_catalog`.`sqlmesh__shop`.`shop__orders__123456`, x]",
            ["id", "amount"],
        ),
        (
            "BatchScan lake.sqlmesh__shop.shop__orders__123456",
            "BatchScan lake.sqlmesh__shop.shop__orders__123456[id#1L] "
            "lake.sqlmesh__shop.shop__orders__123456 (branch=null) "
            "[filters=day IS NOT NULL, day = '2024-01-01', groupedBy=] RuntimeFilters: []",
            ["id", "day", "day"],
        ),
        ("Scan parquet ", SCAN.replace("id#1,amount#2L", ""), []),
        ("Scan parquet ", SCAN.replace("amount#2L", "... 30 more fields"), None),
    ],
    ids=["parquet", "hive", "iceberg", "a count", "cut"],
)
def test_scan__says_which_columns(node: str, text: str, columns: list[str] | None) -> None:
    assert scans(node, text) == [(TABLE, columns)]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("Scan parquet ", SCAN.replace("123456", "123456__dev")),
        ("Scan parquet ", "FileScan parquet spark_catalog.raw.orders[id#1]"),
        ("Filter", SCAN),
    ],
    ids=["a preview", "another table", "no scan"],
)
def test_scan__of_something_else__is_none(node: str, text: str) -> None:
    assert scans(node, text) == []


def found(root: Path, **logs: bytes) -> ReadersInEventLogs:
    """What the logs of a directory tell."""
    for name, content in logs.items():
        path = root / name
        path.write_bytes(content)
    return find_readers_in_event_logs(LocalEventLogFiles(_never), str(root), MODELS, now=NOW)


def _never(_path: str) -> AbstractContextManager[str]:
    raise AssertionError("nothing is compressed")


@pytest.fixture(autouse=True)
def new_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are as new as the moment that the tests take for now."""
    listed = LocalEventLogFiles.list_entries

    def with_time(self: LocalEventLogFiles, path: str) -> list[event_logs.ListedEventLogFile]:
        entries = listed(self, path)
        return [event_logs.ListedEventLogFile(e.path, e.name, e.directory, NOW) for e in entries]

    monkeypatch.setattr(LocalEventLogFiles, "list_entries", with_time)


def test_readers__are_applications_with_models_and_columns(tmp_path: Path) -> None:
    more = SCAN.replace("amount#2L", "day#3")
    seen = found(tmp_path, a=log(begin(), read(), read(more, NOW - 30)), b=log(begin("other")))
    ((who, activity),) = seen.readers.items()
    assert who == ("export", "etl")
    assert (activity.statements, activity.last) == (2, NOW - 30)
    assert {m: r.columns for m, r in activity.reads.items()} == {
        "shop.orders": {"id", "amount", "day"}
    }
    assert (seen.counts["read"], seen.counts["foreign"]) == (1, 1)


def test_application__that_builds_tables_of_sqlmesh__is_no_reader(tmp_path: Path) -> None:
    seen = found(tmp_path, a=log(begin(), read(), statement(2, NOW - 9, NOW - 8)))
    assert seen.readers == {}
    assert seen.counts["own"] == 1


@pytest.mark.parametrize(("days", "counts"), [(DAYS - 1, 1), (DAYS + 1, 0)])
def test_statement__counts_for_90_days(tmp_path: Path, days: int, counts: int) -> None:
    seen = found(tmp_path, a=log(begin(), read(at=NOW - days * 86_400)))
    assert len(seen.readers) == counts


def test_lines__that_are_no_events__are_left_out_and_counted(tmp_path: Path) -> None:
    begins = f'{{"Event":"{SQL}ExecutionStart"'
    deep = f'{begins},"sparkPlanInfo":{"[" * 100_000}\n'
    bad = f'{begins},"time":tomorrow}}\n{begins}}}\nnonsense\n{deep}\n'
    content = log(begin()) + bad.encode() + log(read())
    seen = found(tmp_path, a=content, b=b"\x00\xff" * 10_000, c=log(begin(version="2.4.8"), read()))
    assert list(seen.readers) == [("export", "etl")]
    assert (seen.counts["malformed"], seen.counts["unreadable"]) == (3, 1)
    assert seen.counts["other_version"] == 1


def test_line__that_does_not_end__is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_logs, "MOST_LINE_BYTES", 20_000)
    endless = f'{{"Event":"{SQL}ExecutionStart","x":"{"y" * 90_000}"}}\n'.encode()
    seen = found(tmp_path, a=log(begin()) + endless + log(read()))
    assert list(seen.readers) == [("export", "etl")]
    assert seen.counts["malformed"] == 1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("export", "export"),
        ("/opt/jobs/secret/export.py", "export.py"),
        (r"C:\\jobs\\export.py", "export.py"),
        ("a\nb\x1b[31m c\ud800", "a b[31m c"),
        ("x" * 500, "x" * 200),
        (None, "None"),
    ],
)
def test_name__is_one_line_without_a_path(name: object, shown: str) -> None:
    assert shorten_name_of_event_log_reader(name) == shown


def test_runs__of_one_application__are_one_reader() -> None:
    names = ["export-2024-01-01", "export-2024-01-02", "report_v2"]
    made = {(name, "etl"): ReaderInEventLog(1.0, 1) for name in names}
    joined = join_runs_of_event_log_readers(made)
    assert sorted(name for name, _ in joined) == ["export-*-*-*", "report_v2"]
    assert joined[("export-*-*-*", "etl")].statements == 2
    assert (
        len(
            join_runs_of_event_log_readers(
                {("a1", "x"): ReaderInEventLog(), ("a2", "y"): ReaderInEventLog()}
            )
        )
        == 2
    )


@dataclass
class Info:
    name: str
    table: str
    is_model: bool = True
    is_symbolic: bool = False

    def table_name(self) -> str:
        return self.table


def test_tables__are_those_of_prods_models_whatever_their_version() -> None:
    orders = Info('"lake"."Shop"."orders"', '"lake"."sqlmesh__Shop"."Shop__orders__123"')
    other = Info('"lake"."raw"."x"', "", is_symbolic=True)
    assert map_physical_tables([orders, other]) == {"sqlmesh__shop.shop__orders": "Shop.orders"}
    bare = Info('"shop"."orders"', '"sqlmesh__shop"."shop__orders__123"')
    assert set(map_physical_tables([bare]).values()) == {"shop.orders"}
    else_ = Info('"b"."s"."t"', '"b"."sqlmesh__s"."s__t__9123"')
    assert set(map_physical_tables([orders, else_]).values()) == {
        "lake.Shop.orders",
        "b.s.t",
    }


names = st.text(min_size=1).map(shorten_name_of_event_log_reader).filter(bool)


@given(st.lists(st.tuples(names, names, st.lists(names)), max_size=4))
def test_file__that_is_written__is_read_by_the_policy(
    given_readers: list[tuple[str, str, list[str]]],
) -> None:
    document = ExposuresDocument(
        since="2026-08-28T00:00:00Z",
        readers=[
            LoggedReader(
                application=name,
                user=user,
                last_read="2026-11-20T00:00:00Z",
                statements=3,
                reads={"shop.orders": columns, "shop.all": None},
            )
            for name, user, columns in given_readers
        ],
        seconds=1.0,
        versions=Versions(ci_bot="0.1.0", python="3.11.9"),
    )
    text = render_exposures_for_laptop(document, until="2026-11-26")
    assert text.startswith(HEADER)
    entry = policy("exposures:\n- {file: a.yml, owner: acme/data}\n").files
    read_back = read_exposures_listed_by_policy(entry, lambda paths: [text.encode()])
    assert [(item.name, item.contacts, item.accounts, dict(item.reads)) for item in read_back] == [
        (
            " ".join(name.split()),
            (" ".join(user.split()),),
            ("acme/data",),
            {
                "shop.orders": tuple(dict.fromkeys(" ".join(c.split()).lower() for c in columns)),
                "shop.all": None,
            },
        )
        for name, user, columns in given_readers
    ]
