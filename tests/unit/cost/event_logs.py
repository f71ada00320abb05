"""Event logs as Spark writes them, made by hand: only the fields that are read, and some noise."""

from __future__ import annotations

import json
from typing import Any

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
TABLE = "sqlmesh__shop.shop__orders__123456"
NODE = "Execute InsertIntoHadoopFsRelationCommand"
WRITES = (
    f"{NODE} file:/wh/sqlmesh__shop.db/shop__orders__123456, false, Parquet, Overwrite, "
    "`spark_catalog`.`sqlmesh__shop`.`shop__orders__123456`, ParquetHiveSerDe"
)
RANGE = (
    "(2) Filter\nCondition : ((isnotnull(day#1) AND (day#1 >= 2024-01-01)) "
    "AND (day#1 <= 2024-01-05))\n"
)


def line(event: str, **fields: Any) -> str:
    return json.dumps({"Event": event, **fields}, separators=(",", ":"))


def begin(version: str = "3.5.9", application: str = "app-1") -> list[str]:
    return [
        line("SparkListenerLogStart", **{"Spark Version": version}),
        line("SparkListenerEnvironmentUpdate", **{"Spark Properties": {"secret": "hunter2"}}),
        line("SparkListenerApplicationStart", **{"App ID": application, "App Name": "nightly"}),
        executor("driver", 0, 0),
        executor("1", 0, 4),
    ]


def executor(name: str, at: int, cores: int) -> str:
    info = {"Host": "h", "Total Cores": cores}
    return line(
        "SparkListenerExecutorAdded",
        **{"Timestamp": at * 1000, "Executor ID": name, "Executor Info": info},
    )


def statement(
    number: int,
    start: float,
    end: float | None,
    *,
    node: str = NODE,
    text: str = WRITES,
    plan: str = RANGE,
    milliseconds: int = 2_000,
    read: int = 500,
    written: int = 7,
) -> list[str]:
    """A statement with one job of one stage; `end` None: it never came to one."""
    info = {"nodeName": node, "simpleString": text, "children": []}
    root = {"nodeName": "AdaptiveSparkPlan", "simpleString": "", "children": [info]}
    sums = {
        "executorRunTime": milliseconds,
        "input.bytesRead": read,
        "input.recordsRead": read,
        "output.recordsWritten": written,
    }
    stage = {
        "Stage ID": number,
        "Number of Tasks": 2,
        "Accumulables": [
            {"Name": f"internal.metrics.{name}", "Value": value} for name, value in sums.items()
        ]
        + [{"Name": "number of output rows", "Value": "12"}],
    }
    lines = [
        line(
            f"{SQL}ExecutionStart",
            executionId=number,
            physicalPlanDescription=plan,
            sparkPlanInfo=root,
            time=int(start * 1000),
        ),
        line(
            "SparkListenerJobStart",
            **{
                "Job ID": number,
                "Stage IDs": [number],
                "Properties": {"spark.sql.execution.id": str(number)},
            },
        ),
        line("SparkListenerTaskEnd", **{"Stage ID": number, "Task Metrics": {"noise": 1}}),
        line("SparkListenerStageCompleted", **{"Stage Info": stage}),
    ]
    if end is not None:
        lines.append(line(f"{SQL}ExecutionEnd", executionId=number, time=int(end * 1000)))
    return lines


def audit(number: int, start: float, end: float) -> list[str]:
    text = "FileScan parquet spark_catalog.sqlmesh__shop.shop__orders__123456[id#1]"
    return statement(number, start, end, node="Scan parquet ", text=text, plan="", read=50)


def finish() -> list[str]:
    return [line("SparkListenerApplicationEnd", Timestamp=9_000_000)]


def log(*parts: list[str]) -> bytes:
    return "".join(f"{each}\n" for part in parts for each in part).encode()
