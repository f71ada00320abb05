"""The worker as a process: its channel to the bot, signals, Java, Spark's catalog, imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.runtime import (
        early_imports,
        early_session,
        imports,
        java,
        java_process,
        load_trace,
        spark_catalog,
    )
    from ci_bot.worker.runtime.imports import delay_import_work
    from ci_bot.worker.runtime.java_process import WATCH
    from ci_bot.worker.runtime.load_trace import exclude_from_load_trace
    from ci_bot.worker.runtime.process import (
        EndOfWorkerSpark,
        ForkedBackgroundWork,
        KilledWorkerFork,
        WorkerChannelToBot,
        WorkerPhaseClock,
        WorkerStopRequest,
        cancel_spark_jobs_of_worker,
        may_fork_worker,
        silence_worker_log,
        write_worker_log_line,
    )
    from ci_bot.worker.runtime.spark_catalog import (
        SESSION_CATALOG,
        ObjectKind,
        SparkCatalog,
        SparkCatalogAdapterFiles,
        SparkCatalogAdapterSql,
        SparkCatalogFilesPort,
        SparkRelation,
        SparkTableStorage,
        quote_spark_identifier,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "process": [
            "ForkedBackgroundWork",
            "WorkerPhaseClock",
            "KilledWorkerFork",
            "WorkerChannelToBot",
            "write_worker_log_line",
            "silence_worker_log",
            "EndOfWorkerSpark",
            "WorkerStopRequest",
            "cancel_spark_jobs_of_worker",
            "may_fork_worker",
        ],
        "early_imports": [],
        "early_session": [],
        "java_process": ["WATCH"],
        "imports": ["delay_import_work"],
        "java": [],
        "load_trace": ["exclude_from_load_trace"],
        "spark_catalog": [
            "SparkCatalogAdapterFiles",
            "SparkCatalogAdapterSql",
            "SparkCatalog",
            "SparkCatalogFilesPort",
            "ObjectKind",
            "SparkRelation",
            "SESSION_CATALOG",
            "SparkTableStorage",
            "quote_spark_identifier",
        ],
    },
)
