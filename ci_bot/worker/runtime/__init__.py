"""The worker as a process: its channel to the bot, signals, Java, Spark's catalog, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.runtime import imports, java, java_process, load_trace, spark_catalog
    from ci_bot.worker.runtime.imports import delay_import_work
    from ci_bot.worker.runtime.java_process import WATCH
    from ci_bot.worker.runtime.load_trace import exclude_from_trace
    from ci_bot.worker.runtime.process import (
        BackgroundWork,
        BotChannel,
        KilledProcess,
        PhaseClock,
        SparkEnd,
        StopRequest,
        cancel_spark_jobs,
        silence_log,
        write_log_line,
    )
    from ci_bot.worker.runtime.spark_catalog import (
        SESSION_CATALOG,
        AdapterFiles,
        AdapterSql,
        FilesPort,
        ObjectKind,
        Relation,
        SparkCatalog,
        TableStorage,
        quote_identifier,
    )

__all__ = [
    "SESSION_CATALOG",
    "WATCH",
    "AdapterFiles",
    "AdapterSql",
    "BackgroundWork",
    "BotChannel",
    "FilesPort",
    "KilledProcess",
    "ObjectKind",
    "PhaseClock",
    "Relation",
    "SparkCatalog",
    "SparkEnd",
    "StopRequest",
    "TableStorage",
    "cancel_spark_jobs",
    "delay_import_work",
    "exclude_from_trace",
    "imports",
    "java",
    "java_process",
    "load_trace",
    "quote_identifier",
    "silence_log",
    "spark_catalog",
    "write_log_line",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "process": [
            "BackgroundWork",
            "PhaseClock",
            "KilledProcess",
            "BotChannel",
            "write_log_line",
            "silence_log",
            "SparkEnd",
            "StopRequest",
            "cancel_spark_jobs",
        ],
        "java_process": ["WATCH"],
        "imports": ["delay_import_work"],
        "java": [],
        "load_trace": ["exclude_from_trace"],
        "spark_catalog": [
            "AdapterFiles",
            "AdapterSql",
            "SparkCatalog",
            "FilesPort",
            "ObjectKind",
            "Relation",
            "SESSION_CATALOG",
            "TableStorage",
            "quote_identifier",
        ],
    },
)
