"""Measures the input of models' batches: one batch of each, then more of them, as time allows.

It measures the query of a batch as it would run now. A table that the plan will build is missing
or not complete, so prod's table replaces it; columns that prod's table lacks are null. Nothing is
executed to get the query.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlmesh.core.macros import RuntimeStage
from sqlmesh.core.snapshot import Snapshot
from sqlmesh.utils.date import make_inclusive

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cost.prediction import InputSize, spread_batches
from ci_bot.worker.cost.spark_counters import list_items_of_scala_sequence
from ci_bot.worker.messages import extract_sentence_of_error
from ci_bot.worker.planning import BuiltPlan, Interval

if TYPE_CHECKING:
    from sqlmesh.core.model import Model


_BATCH = "_batch"


class InputSizeQueries:
    """Queries of the models of one plan.

    Args:
        prod: The snapshots of prod, by fully qualified name.
        building: The models whose tables the plan will fill, by fully qualified name.
        dialect: The engine's.
    """

    def __init__(
        self,
        planned: BuiltPlan,
        prod: Callable[[Collection[str]], Mapping[str, Snapshot]],
        building: Collection[str],
        dialect: str,
    ) -> None:
        self._planned, self._prod = planned, prod
        self._building, self._dialect = frozenset(building), dialect

    @cached_property
    def _by_name(self) -> dict[str, Snapshot]:
        return {snapshot.name: snapshot for snapshot in self._planned.plan_snapshots.values()}

    def render_batch_query(self, snapshot: Snapshot, span: Interval) -> str | None:
        """Renders the query's text; None for a Python model, or if a parent is not built and not in
        prod.
        """
        model = snapshot.model
        if not model.is_sql:
            return None
        read, views = self._list_read_tables(snapshot)
        stand_ins = self._prod([name for name in read if name in self._building])
        if any(
            name not in stand_ins and not parent.is_seed
            for name, parent in read.items()
            if name in self._building
        ):
            return None
        tables = {
            name: stand_ins[name].table_name()
            for name in read
            if name in self._building and name in stand_ins
        }
        query = model.render_query(
            start=span[0],
            end=span[1],
            execution_time=self._planned.plan.execution_time,
            snapshots={**read, **{name: self._by_name[name] for name in views}},
            table_mapping=tables,
            expand=views,
            deployability_index=self._planned.deployable,
            runtime_stage=RuntimeStage.EVALUATING,
        )
        if query is None:
            return None
        for name, parent in read.items():
            if name in self._building:
                query = _fit_prod_columns(query, parent, stand_ins.get(name))
        return sqlmesh_compat.render_as_sqlmesh_executes(
            self._limit_query_to_batch(query, model, span), self._dialect
        )

    def _list_read_tables(self, snapshot: Snapshot) -> tuple[dict[str, Snapshot], set[str]]:
        """Lists the tables that a snapshot reads, and the views in between that do not exist
        yet.
        """
        tables: dict[str, Snapshot] = {}
        views: set[str] = set()
        changed = {item.name for item in self._planned.changed_snapshots}
        waiting = list(snapshot.model.depends_on)
        while waiting:
            name = waiting.pop()
            parent = self._by_name.get(name)
            if parent is None or name in tables or name in views or not parent.is_model:
                continue
            if parent.is_embedded or (parent.is_view and name in changed):
                views.add(name)
                waiting += parent.model.depends_on
            else:
                tables[name] = parent
        return tables, views

    def _limit_query_to_batch(self, query: exp.Query, model: Model, span: Interval) -> exp.Query:
        """Limits the query to the batch's rows, as SQLMesh does.
        (`insert_overwrite_by_time_partition`)
        """
        if model.time_column is None or not model.kind.is_incremental_by_time_range:
            return query
        low, high = (
            model.convert_to_time_column(moment)
            for moment in make_inclusive(span[0], span[1], self._dialect)
        )
        inside = exp.Between(this=model.time_column.column.copy(), low=low, high=high)
        bounded: exp.Query = exp.select("*").from_(query.subquery(_BATCH)).where(inside)
        return bounded


def _fit_prod_columns(query: exp.Query, parent: Snapshot, prod: Snapshot | None) -> exp.Query:
    """Makes a query read a parent with all columns that it will have; new ones are null."""
    wanted = parent.model.columns_to_types or {}
    there = (prod.model.columns_to_types or {}) if prod is not None else {}
    missing = {name: kind for name, kind in wanted.items() if name not in there}
    if prod is not None and (not missing or not there):
        return query
    nulls = [
        exp.alias_(exp.cast(exp.null(), kind), name, quoted=True) for name, kind in missing.items()
    ]
    table = exp.to_table(prod.table_name() if prod is not None else parent.table_name())

    # The subqueries contain the table, too, so list the nodes before replacing any.
    for node in [
        each
        for each in query.find_all(exp.Table)
        if _split_input_table_name(each) == _split_input_table_name(table)
    ]:
        shaped = exp.select(*nulls) if prod is None else exp.select("*", *nulls).from_(table.copy())
        node.replace(shaped.subquery(node.alias or table.name))
    return query


def _split_input_table_name(table: exp.Table) -> tuple[str, ...]:
    return tuple(part.name for part in table.parts)


# Analysing a query takes tenths of a second. An apply of many models must not wait longer than
# this.
BUDGET_SECONDS = 60.0
# This many equal answers mean that the size does not depend on the range: no partition is pruned.
_EQUAL = 3


@dataclass
class ModelOfUnknownCost:
    """A model whose size is not known yet.

    Attributes:
        batches: the ranges that will be built, oldest first.
        read: returns the bytes that one batch reads; None if not known.
    """

    model: str
    kind: str
    batches: Sequence[Interval]
    read: Callable[[Interval], int | None]
    found: list[int] = field(default_factory=list)
    lost: bool = False


def measure_input_sizes(
    models: Sequence[ModelOfUnknownCost],
    *,
    now: Callable[[], float],
    stop: Callable[[], bool],
    log: Callable[[str], None],
    budget_seconds: float = BUDGET_SECONDS,
) -> Mapping[str, InputSize]:
    """Measures the input sizes of models; leaves out those that cannot be measured.

    Args:
        now: Seconds, of any clock.
        stop: Whether the run was asked to stop; the result then has the sizes so far.
        log: Called with the reason why a model could not be measured.
    """
    end = now() + budget_seconds
    waiting = [(item, spread_batches(item.batches)) for item in models if item.batches]
    for turn in range(max((len(order) for _, order in waiting), default=0)):
        for item, order in waiting:
            if stop() or now() >= end:
                return _sum_input_sizes(models)
            if turn < len(order) and not item.lost and not _is_input_size_settled(item):
                _measure_input_size_of_model(item, order[turn], log)
    return _sum_input_sizes(models)


def _measure_input_size_of_model(
    item: ModelOfUnknownCost, span: Interval, log: Callable[[str], None]
) -> None:
    try:
        size = item.read(span)
    except Exception as error:  # of the renderer, of macros or of Spark: the size is unknown
        log(f"How much {item.model} will read is not known: {extract_sentence_of_error(error)}")
        size = None
    if size is None:
        item.lost = True
    else:
        item.found.append(size)


def _is_input_size_settled(item: ModelOfUnknownCost) -> bool:
    return len(item.found) >= _EQUAL and len(set(item.found)) == 1


def _sum_input_sizes(models: Sequence[ModelOfUnknownCost]) -> dict[str, InputSize]:
    return {
        item.model: InputSize(
            bytes=round(sum(item.found) / len(item.found) * len(item.batches)),
            batches=len(item.batches),
            kind=item.kind,
        )
        for item in models
        if item.found and not item.lost
    }


# The compressed size of each column of a Parquet file, from its footer.


def read_input_sizes_of_columns(session: Any, path: str) -> Mapping[str, int] | None:
    """Reads the bytes of each column by its name in lower case; a struct counts as one. None if the
    file is not Parquet, is encrypted, or may not be read.

    Args:
        session: A classic `SparkSession`.
        path: Spark's path of the file, with its file system.
    """
    jvm = session._jvm
    try:
        settings = session._jsparkSession.sessionState().newHadoopConf()
        file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
            jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(path)), settings
        )
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            found: Counter[str] = Counter()
            for block in reader.getFooter().getBlocks():
                for column in block.getColumns():
                    found[str(column.getPath().toArray()[0]).lower()] += int(column.getTotalSize())
        finally:
            reader.close()
    except Exception:
        # The column types are the fallback, though less exact.
        return None
    return found or None


# The bytes that Spark will read for a query, from the leaves of its optimized plan. Runs nothing.
#
# The number at the plan's root is useless, because a join multiplies the sizes of its sides there.
# A leaf's size is that of the files that are left after partitions were pruned, or of the tasks
# that Iceberg has planned. Only some columns of a file are read. Their sizes come from the footer
# of one file, because a column of few values takes almost nothing, however wide its type is.


# Spark's answer if it has no statistics is Long.MaxValue (spark.sql.defaultSizeInBytes).
UNKNOWN_SIZE = 2**60
# Formats from which Spark reads only the columns that a query needs. Iceberg's scan reports its
# columns.
_COLUMNAR = ("parquet", "orc")
# What Spark reads of each file besides the columns: a footer, twice, and what a file system reads
# ahead. Measured on files of 57 KB and of 1 MB: 27 KB to 34 KB each.
BYTES_OF_A_FILE = 30_000
_ID = re.compile(r"#(\d+)")
_SEPARATOR = "\u0001"
# DataType.defaultSize, by which Spark itself weighs columns against each other.
_WIDTHS = {
    "boolean": 1, "byte": 1, "short": 2, "integer": 4, "long": 8, "float": 4, "double": 8,
    "date": 4, "timestamp": 8, "timestamp_ntz": 8, "string": 20, "binary": 100,
}  # fmt: skip

_OTHER_WIDTH = 16


class InputSizes:
    """Estimates how much queries will read.

    Args:
        session: A classic `SparkSession`.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._columns: dict[str, Mapping[str, int] | None] = {}

    def estimate_query_bytes(self, sql: str) -> int | None:
        """Estimates the bytes that a query will read; None if Spark does not know one of its
        tables.

        Args:
            sql: A query; Spark analyses and optimizes it, which reads file lists and manifests.

        Raises:
            PySparkException, Py4JError: Spark cannot analyse it.
        """
        plan = self._session.sql(sql)._jdf.queryExecution().optimizedPlan()
        plans = [plan, *list_items_of_scala_sequence(plan.subqueriesAll())]
        leaves: list[Any] = []
        needed: set[str] = set()
        for each in plans:
            needed |= _list_spark_attribute_ids(each.output())
            for node in _iterate_spark_plan_nodes(each):
                if node.children().isEmpty():
                    leaves.append(node)
                else:
                    needed |= _list_spark_attribute_ids(node.references())
        sizes = [self._count_bytes_read(leaf, needed) for leaf in leaves]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def _count_bytes_read(self, leaf: Any, needed: set[str]) -> int | None:
        """Returns the bytes of a leaf that are read for the columns that the plan needs."""
        files = self._list_files(leaf)
        size = int(str(leaf.stats().sizeInBytes()))
        if size >= UNKNOWN_SIZE and files is not None:
            size = int(files.sizeInBytes())
        if size >= UNKNOWN_SIZE:
            return None
        if files is None or _read_input_file_format(leaf) not in _COLUMNAR:
            return size
        paths = files.inputFiles()
        share = self._share_of_columns(leaf, paths, needed)
        return min(size, round(size * share) + len(paths) * BYTES_OF_A_FILE)

    def _list_files(self, leaf: Any) -> Any | None:
        """Returns Spark's list of a leaf's files; None if it is not a table of files.

        A partitioned table that is read whole is not listed yet: Spark lists it when a filter
        prunes it, or when it runs.
        """
        if leaf.nodeName() != "LogicalRelation" or not _is_instance_of(
            leaf.relation(), "HadoopFsRelation"
        ):
            return None
        location = leaf.relation().location()
        if not _is_instance_of(location, "CatalogFileIndex"):
            return location
        nil = getattr(self._session._jvm.scala.collection.immutable, "Nil$")
        return location.filterPartitions(getattr(nil, "MODULE$"))

    def _share_of_columns(self, leaf: Any, paths: Any, needed: set[str]) -> float:
        """Returns the share of a leaf's bytes that are in the needed columns."""
        fields = json.loads(leaf.schema().json())["fields"]
        columns = str(leaf.output().mkString(_SEPARATOR)).split(_SEPARATOR)
        if len(columns) != len(fields):
            return 1.0
        stored = (
            self._read_stored_sizes(leaf, paths)
            if _read_input_file_format(leaf) == "parquet"
            else None
        )
        sizes = [
            _measure_width_of_type(field["type"])
            if stored is None
            else stored.get(field["name"].lower(), 0)
            for field in fields
        ]
        used = [
            size
            for text, size in zip(columns, sizes, strict=True)
            if _read_spark_attribute_id(text) in needed
        ]
        return sum(used) / sum(sizes) if sum(sizes) else 1.0

    def _read_stored_sizes(self, leaf: Any, paths: Any) -> Mapping[str, int] | None:
        """Reads the size of each column in one of the table's files; None if no file has it."""
        table = leaf.catalogTable()
        roots = leaf.relation().location().rootPaths()
        key = str(table.get().identifier() if table.isDefined() else roots.mkString(_SEPARATOR))
        if key not in self._columns:
            self._columns[key] = (
                read_input_sizes_of_columns(self._session, paths[len(paths) // 2])
                if len(paths)
                else None
            )
        return self._columns[key]


def _read_input_file_format(leaf: Any) -> str:
    return str(leaf.relation().toString()).lower()


def _is_instance_of(thing: Any, kind: str) -> bool:
    return str(thing.getClass().getSimpleName()) == kind


def _measure_width_of_type(kind: Any) -> int:
    return (
        _WIDTHS.get(kind, _OTHER_WIDTH)
        if isinstance(kind, str)
        else _measure_width_of_nested_type(kind)
    )


def _measure_width_of_nested_type(kind: Mapping[str, Any]) -> int:
    if kind["type"] == "struct":
        return sum(_measure_width_of_type(field["type"]) for field in kind["fields"])
    if kind["type"] == "array":
        return _measure_width_of_type(kind["elementType"])
    if kind["type"] == "map":
        return _measure_width_of_type(kind["keyType"]) + _measure_width_of_type(kind["valueType"])
    return _OTHER_WIDTH


def _list_spark_attribute_ids(attributes: Any) -> set[str]:
    """Returns the ids of Spark's columns; a column's name may add a number that is not an id."""
    return set(_ID.findall(str(attributes.mkString(_SEPARATOR))))


def _read_spark_attribute_id(attribute: str) -> str:
    found = _ID.findall(attribute)
    return str(found[-1]) if found else ""


def _iterate_spark_plan_nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in list_items_of_scala_sequence(plan.children()):
        yield from _iterate_spark_plan_nodes(child)
