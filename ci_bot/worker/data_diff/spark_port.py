"""`DiffPort` over a Spark session: the only module of the diff that knows PySpark."""

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
from ci_bot.worker.data_diff.spec import SeenTable, SqlError
from ci_bot.worker.runtime import quote_identifier

# Where Spark keeps the declared type of a CHAR or VARCHAR column, which its schema calls a string:
# CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY.
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
_JOB_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
# What Spark says of a relation without statistics: spark.sql.defaultSizeInBytes, Long.MaxValue,
# and products of it for joins.
_UNKNOWN_SIZE = 2**60
_SENTENCE = 300
# For tables of a few thousand rows nearly all of a query's time goes into making it ready: rules
# that look at the sizes of shuffles, Java code that is generated, and tasks for empty partitions.
_WITHOUT_PREPARING = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}


# Of all ports: global views belong to the application, and one that could not be dropped stays.
_numbers = itertools.count()


class SparkPort:
    """Asks a Spark session. May be used from several threads at once.

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
        """Has Spark analyse a table, and keeps what it has found for `keep`.

        Raises:
            AnalysisException: It does not resolve.
        """
        if table not in self._kept:
            self._kept[table] = self._session.table(table)
        return self._kept[table]

    @contextmanager
    def keep_tables(self, tables: Sequence[str], *, at_once: int) -> Iterator[Mapping[str, str]]:
        """Analyses tables once for all that is asked about them inside; not those of `analyse`.

        Of a view upon views the look takes longer than most questions.

        Args:
            at_once: How many looks may be on their way; no job runs for one.

        Returns:
            What queries call each table.
        """
        with spark_failures(), ThreadPoolExecutor(at_once, "ci-bot-look") as pool:
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
    def look_at(self, table: str, *, few: bool = False) -> Iterator[SeenTable]:
        """A table by a name of this application alone; see `DiffPort`."""
        with spark_failures():
            frame = self._kept[table] if table in self._kept else self._session.table(table)
            schema = json.loads(frame._jdf.schema().json())
        columns = [(field["name"], _declare_field(field)) for field in schema["fields"]]
        read = _as_it_will_be_read(self._quick_session(), frame) if few else frame._jdf
        with self._name_frame(read) as name:
            try:
                yield SeenTable(name, columns, lambda: _estimate_size(frame))
            except SqlError:
                self._kept.pop(table, None)  # it may be another table by now
                raise

    @contextmanager
    def _name_frame(self, frame: Any) -> Iterator[str]:
        """A name that the quick session knows as well, which only a global view has."""
        name = f"ci_bot_diff_{next(_numbers)}"
        with spark_failures():
            schema = self._global_schema
            frame.createGlobalTempView(name)
        try:
            yield f"{quote_identifier(schema)}.{name}"
        finally:
            with suppress(Py4JError, PySparkException):
                self._session.catalog.dropGlobalTempView(name)

    @cached_property
    def _global_schema(self) -> str:
        return str(self._session.conf.get("spark.sql.globalTempDatabase", "global_temp"))

    def query_rows(self, sql: str, *, few: bool = False) -> list[tuple[Any, ...]]:
        """Runs one query in this port's job group; see `DiffPort`."""
        with self._job_group(), spark_failures():
            session = self._quick_session() if few else self._session
            return [tuple(row) for row in session.sql(sql).collect()]

    def _quick_session(self) -> SparkSession:
        """A session like this one, on the same context, which runs queries as they are."""
        with self._lock:
            if self._quick is None:
                self._quick = _without_preparing(self._session)
            return self._quick

    def cancel_queries(self) -> None:
        """Ends the queries of this port that are running now."""
        self._session.sparkContext.cancelJobGroup(self._group)

    @contextmanager
    def _job_group(self) -> Iterator[None]:
        """Puts this thread's jobs into the group, and gives the thread back as it was."""
        context = self._session.sparkContext
        before = {name: context.getLocalProperty(name) for name in _JOB_PROPERTIES}
        context.setJobGroup(self._group, "data diff", interruptOnCancel=True)
        try:
            yield
        finally:
            for name, value in before.items():
                # None removes the property; the signature of PySpark does not know that.
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def side_by_side(session: SparkSession) -> int:
    """How many comparisons the session can feed at a time: one for every two slots, at most 4.

    Two at least: of a small table nearly all the time goes to planning, which leaves the slots
    to the other one. No more tasks run for it, so it needs no more memory.
    """
    return max(2, min(4, session.sparkContext.defaultParallelism // 2))


def _without_preparing(session: SparkSession) -> SparkSession:
    """A session like this one that runs queries as they are; this one if there is none."""
    try:
        # `newSession` would forget what was set in this one, the time zone for example. This is
        # Spark's own method, so another version may not have it.
        copied: Any = session._jsparkSession.cloneSession()
        quick = SparkSession(session.sparkContext, copied)
        for name, value in _WITHOUT_PREPARING.items():
            quick.conf.set(name, value)
    except (PySparkException, Py4JError):
        return session
    return quick


def _as_it_will_be_read(session: SparkSession, frame: DataFrame) -> Any:
    """The table without the views that it was defined through: thirty of them are one scan.

    Spark analyses and optimises what a query reads again, view by view. For tables of a few rows
    that is most of a query's time; of others the filters of a query would not reach the files. This
    is Spark's own method again; where it is missing or refuses, the table stays as it is.
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


def _estimate_size(frame: DataFrame) -> int | None:
    """Bytes that Spark expects to read of a table, from its files; None if it cannot say."""
    with spark_failures():
        plan = frame._jdf.queryExecution().optimizedPlan()
        size = int(str(plan.stats().sizeInBytes()))
    return size if size < _UNKNOWN_SIZE else None


@contextmanager
def spark_failures() -> Iterator[None]:
    """Turns what Spark raises into `SqlError`, whose text holds no value of any row."""
    try:
        yield
    except AnalysisException as error:
        # Made before any row is read, so its text holds names and types only.
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise SqlError(shorten_redacted(first[0], _SENTENCE)) from error
    except (PySparkException, Py4JError) as error:
        # Messages of running queries quote values ("The value 'x' of the type ..."): no text of
        # theirs may leave the warehouse, only the class of the error.
        name = _error_condition(error) if isinstance(error, PySparkException) else None
        raise SqlError(f"{name or type(error).__name__} (see the log).") from error


def _error_condition(error: PySparkException) -> str | None:
    # PySpark's name for it since version 4, which warns of the other one.
    asked: Any = getattr(error, "getCondition", None) or error.getErrorClass
    named: str | None = asked()
    return named


def _render_ddl(kind: Any) -> str:
    """A type of Spark's JSON schema as DDL text: a word, or an object for a nested type.

    PySpark's own classes for it fail on types that they do not know (`interval`), and their text
    form does not quote the names of fields.
    """
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        fields = ",".join(
            f"{quote_identifier(field['name'])}:{_render_ddl(field['type'])}"
            for field in kind["fields"]
        )
        return f"struct<{fields}>"
    if kind["type"] == "array":
        return f"array<{_render_ddl(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_render_ddl(kind['keyType'])},{_render_ddl(kind['valueType'])}>"
    return str(kind["type"])


def _declare_field(field: Mapping[str, Any]) -> str:
    declared = field.get("metadata", {}).get(_DECLARED)
    if isinstance(declared, str) and field["type"] == "string":
        return declared
    return _render_ddl(field["type"])
