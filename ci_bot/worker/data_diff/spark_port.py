"""`DiffPort` over a Spark session: the only module of the diff that uses PySpark."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from ci_bot.redaction import shorten_redacted
from ci_bot.worker.data_diff.spec import DiffedTable, DiffQueryError
from ci_bot.worker.runtime import quote_spark_identifier

# Spark keeps the declared type of a CHAR or VARCHAR column here; its schema calls it a string:
# CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
# Spark's size of a relation without statistics: spark.sql.defaultSizeInBytes, Long.MaxValue, and
# products of it for joins.
_UNKNOWN_SIZE = 2**60
_SENTENCE = 300
# For tables of a few thousand rows nearly all of a query's time is preparation: rules about the
# sizes of shuffles, generated Java code, and tasks for empty partitions.
_WITHOUT_PREPARING = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


# Shared by all ports, because global views belong to the application, and one that could not be
# dropped stays.
_numbers = itertools.count()


class SparkDiffPort:
    """Runs queries on a Spark session. Several threads may use it at once.

    Args:
        session: A session with a context in this process (not Spark Connect).
        group: The name of the job group under which all queries of this port run.
    """

    def __init__(self, session: SparkSession, *, group: str = "ci-bot-data-diff") -> None:
        self._session = session
        self._group = group
        self._lock = threading.Lock()
        self._quick: SparkSession | None = None
        self._kept: dict[str, DataFrame] = {}

    def analyse_table(self, table: str) -> DataFrame:
        """Lets Spark analyse a table, and keeps the result for later calls.

        Raises:
            AnalysisException: Spark cannot resolve it.
        """
        if table not in self._kept:
            self._kept[table] = self._session.table(table)
        return self._kept[table]

    @contextmanager
    def keep_tables(self, tables: Sequence[str], *, at_once: int) -> Iterator[Mapping[str, str]]:
        """Analyses tables once for all queries in the block, unless `analyse_table` did.

        Analysing a view on views takes longer than most queries.

        Args:
            at_once: How many tables are analysed at once; analysing runs no job.

        Returns:
            The name of each table in queries.
        """
        with (
            raise_spark_failures_as_diff_errors(),
            ThreadPoolExecutor(at_once, "ci-bot-look") as pool,
        ):
            found = dict(zip(tables, pool.map(self.analyse_table, tables), strict=True))
        try:
            with ExitStack() as names:
                yield {
                    table: names.enter_context(self._name_frame(frame._jdf))
                    for table, frame in found.items()
                }
        finally:
            for table in found:
                self._kept.pop(table, None)

    @contextmanager
    def open_table(self, table: str, *, few: bool = False) -> Iterator[DiffedTable]:
        """Gives a table a name that only this application uses; see `DiffPort`."""
        with raise_spark_failures_as_diff_errors():
            frame = self._kept[table] if table in self._kept else self._session.table(table)
            schema = json.loads(frame._jdf.schema().json())
        columns = [
            (field["name"], _declare_field_of_diff_type(field)) for field in schema["fields"]
        ]
        read = _flatten_views_for_diff(self._make_quick_session(), frame) if few else frame._jdf
        with self._name_frame(read) as name:
            try:
                yield DiffedTable(name, columns, lambda: _estimate_size_of_diffed_table(frame))
            except DiffQueryError:
                self._kept.pop(table, None)  # it may be another table now
                raise

    @contextmanager
    def _name_frame(self, frame: Any) -> Iterator[str]:
        """Names a frame for both sessions, which only a global view can do."""
        name = f"ci_bot_diff_{next(_numbers)}"
        with raise_spark_failures_as_diff_errors():
            schema = self._global_schema
            frame.createGlobalTempView(name)
        try:
            yield f"{quote_spark_identifier(schema)}.{name}"
        finally:
            with suppress(Py4JError, PySparkException):
                self._session.catalog.dropGlobalTempView(name)

    @cached_property
    def _global_schema(self) -> str:
        return str(self._session.conf.get("spark.sql.globalTempDatabase", "global_temp"))

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        """Runs one query in this port's job group; see `DiffPort`."""
        with self._enter_job_group(), raise_spark_failures_as_diff_errors():
            session = self._make_quick_session() if few else self._session
            return [tuple(row) for row in session.sql(sql).collect()]

    def _make_quick_session(self) -> SparkSession:
        """Returns a session on the same context that runs queries without much preparation."""
        with self._lock:
            if self._quick is None:
                self._quick = _clone_quick_session_for_diff(self._session)
            return self._quick

    def cancel_queries(self) -> None:
        """Ends the running queries of this port."""
        self._session.sparkContext.cancelJobGroup(self._group)

    @contextmanager
    def _enter_job_group(self) -> Iterator[None]:
        """Puts this thread's jobs into the group; restores the thread's properties afterwards."""
        context = self._session.sparkContext
        before = {name: context.getLocalProperty(name) for name in _JOB_PROPERTIES}
        context.setJobGroup(self._group, "data diff", interruptOnCancel=True)
        try:
            yield
        finally:
            for name, value in before.items():
                # None removes the property; PySpark's signature does not allow it.
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def count_parallel_diffs(session: SparkSession) -> int:
    """Returns how many comparisons a session runs at once: one for every two slots, 2 to 4.

    At least two: a small table's time is mostly planning, and meanwhile the other comparison can
    use the slots. That runs no more tasks, so it needs no more memory.
    """
    return max(2, min(4, session.sparkContext.defaultParallelism // 2))


def _clone_quick_session_for_diff(session: SparkSession) -> SparkSession:
    """Clones the session, with less query preparation; returns the session itself if it cannot."""
    try:
        # `newSession` would lose this session's settings, such as the time zone. `cloneSession` is
        # internal to Spark, so another version may lack it.
        copied: Any = session._jsparkSession.cloneSession()
        quick = SparkSession(session.sparkContext, copied)
        for name, value in _WITHOUT_PREPARING.items():
            quick.conf.set(name, value)
    except (PySparkException, Py4JError):
        return session
    return quick


def _flatten_views_for_diff(session: SparkSession, frame: DataFrame) -> Any:
    """Removes the views between a table and its scan: thirty of them become one scan.

    Spark analyses and optimises the views again for each query. For tables of a few rows that is
    most of a query's time; for others the query's filters would not reach the files. The method is
    internal to Spark; if it is missing or fails, the table stays as it is.
    """
    planned = frame._jdf
    try:
        plan = planned.queryExecution().optimizedPlan()
        # `org.apache.spark.sql.Dataset`, since Spark 4 in a package `classic`.
        names = str(planned.getClass().getName()).split(".")
        dataset: Any = reduce(getattr, names, session.sparkContext._jvm)
        return dataset.ofRows(session._jsparkSession, plan)
    except (Py4JError, PySparkException, TypeError):
        return planned


def _estimate_size_of_diffed_table(frame: DataFrame) -> int | None:
    """Returns the bytes that Spark expects to read from a table's files; None if unknown."""
    with raise_spark_failures_as_diff_errors():
        plan = frame._jdf.queryExecution().optimizedPlan()
        size = int(str(plan.stats().sizeInBytes()))
    return size if size < _UNKNOWN_SIZE else None


@contextmanager
def raise_spark_failures_as_diff_errors() -> Iterator[None]:
    """Turns Spark's errors into `DiffQueryError`, whose text contains no value of any row."""
    try:
        yield
    except AnalysisException as error:
        # Such an error comes before any row is read, so its text contains only names and types.
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise DiffQueryError(shorten_redacted(first[0], _SENTENCE)) from error
    except (PySparkException, Py4JError) as error:
        # Messages of running queries quote values ("The value 'x' of the type ..."). None of their
        # text may leave the warehouse, only the class of the error.
        name = _read_error_condition_of_diff(error) if isinstance(error, PySparkException) else None
        raise DiffQueryError(f"{name or type(error).__name__} (see the log).") from error


def _read_error_condition_of_diff(error: PySparkException) -> str | None:
    # PySpark's name for it since version 4; the older name gives a warning there.
    getter: Any = getattr(error, "getCondition", None) or error.getErrorClass
    named: str | None = getter()
    return named


def _render_diff_ddl(kind: Any) -> str:
    """Renders a type of Spark's JSON schema as DDL text: a word, or an object for a nested type.

    PySpark's own classes for it fail on types that they do not know (`interval`), and their text
    form does not quote the names of fields.
    """
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        fields = ",".join(
            f"{quote_spark_identifier(field['name'])}:{_render_diff_ddl(field['type'])}"
            for field in kind["fields"]
        )
        return f"struct<{fields}>"
    if kind["type"] == "array":
        return f"array<{_render_diff_ddl(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_render_diff_ddl(kind['keyType'])},{_render_diff_ddl(kind['valueType'])}>"
    return str(kind["type"])


def _declare_field_of_diff_type(field: Mapping[str, Any]) -> str:
    declared = field.get("metadata", {}).get(_DECLARED)
    if isinstance(declared, str) and field["type"] == "string":
        return declared
    return _render_diff_ddl(field["type"])
