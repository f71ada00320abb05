"""The worker as a process: its channel to the bot, signals, Java, Spark's catalog, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.runtime import early_java, imports, java, load_trace, spark_catalog
    from ci_bot.worker.runtime.background_process import Aside, Clock, KilledProcess
    from ci_bot.worker.runtime.channel import Channel, log
    from ci_bot.worker.runtime.imports import compile_late
    from ci_bot.worker.runtime.java_watch import WATCH
    from ci_bot.worker.runtime.load_trace import not_loading
    from ci_bot.worker.runtime.log_silence import silence_log
    from ci_bot.worker.runtime.spark_catalog import (
        SESSION_CATALOG,
        AdapterFiles,
        AdapterSql,
        Catalog,
        FilesPort,
        ObjectKind,
        Relation,
        Storage,
        quoted,
    )
    from ci_bot.worker.runtime.stopping import SparkEnd, Stop, cancel_spark_jobs

__all__ = [
    "SESSION_CATALOG",
    "WATCH",
    "AdapterFiles",
    "AdapterSql",
    "Aside",
    "Catalog",
    "Channel",
    "Clock",
    "FilesPort",
    "KilledProcess",
    "ObjectKind",
    "Relation",
    "SparkEnd",
    "Stop",
    "Storage",
    "cancel_spark_jobs",
    "compile_late",
    "early_java",
    "imports",
    "java",
    "load_trace",
    "log",
    "not_loading",
    "quoted",
    "silence_log",
    "spark_catalog",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "background_process": ["Aside", "Clock", "KilledProcess"],
        "channel": ["Channel", "log"],
        "early_java": [],
        "imports": ["compile_late"],
        "java": [],
        "java_watch": ["WATCH"],
        "load_trace": ["not_loading"],
        "log_silence": ["silence_log"],
        "spark_catalog": [
            "AdapterFiles",
            "AdapterSql",
            "Catalog",
            "FilesPort",
            "ObjectKind",
            "Relation",
            "SESSION_CATALOG",
            "Storage",
            "quoted",
        ],
        "stopping": ["SparkEnd", "Stop", "cancel_spark_jobs"],
    },
)
