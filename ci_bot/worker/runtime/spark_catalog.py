"""The contents of Spark's catalog, read by plain statements that hide no errors.

SQLMesh's own listing turns every error into "no objects" (`_get_data_objects`), which does not
prove that an object is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlglot import exp
from sqlmesh.core.environment import Environment
from sqlmesh.core.snapshot import DeployabilityIndex, Snapshot

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.engine_adapter import EngineAdapter

STILL_THERE = "Spark still shows it after the drop."

ObjectKind = Literal["view", "table"]

SESSION_CATALOG = "spark_catalog"

# Spark's error classes, and the words of catalogs that have none.
_NO_SCHEMA = ("SCHEMA_NOT_FOUND", "NoSuchNamespace", "NoSuchDatabase")

_NO_VIEW = (*_NO_SCHEMA, "TABLE_OR_VIEW_NOT_FOUND", "VIEW_NOT_FOUND", "NoSuchView", "NoSuchTable")

_NO_VIEWS = ("does not support views", "MISSING_CATALOG_ABILITY")
# A chain of unions is as deep as it is long, and Spark recurses into it; with adaptive planning,
# again after each part.
_COUNTED_TOGETHER = 25


class SparkCatalogSqlPort(Protocol):
    """A runner of statements on Spark; the fields of the rows have names and numbers."""

    def query_rows(self, sql: str) -> Sequence[Any]: ...


class SparkCatalogAdapterSql:
    """`SparkCatalogSqlPort` over SQLMesh's Spark adapter; the session starts at the first
    statement.
    """

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter

    def query_rows(self, sql: str) -> Sequence[Any]:
        spark: Any = self._adapter.spark  # the base of all adapters declares that it has none
        rows: Sequence[Any] = spark.sql(sql).collect()
        return rows


class SparkCatalogFilesPort(Protocol):
    """A reader of the storage below tables."""

    def measure_size(self, location: str) -> int | None: ...


class SparkCatalogAdapterFiles:
    """`SparkCatalogFilesPort` over the Hadoop file systems that Spark itself uses."""

    def __init__(self, adapter: EngineAdapter) -> None:
        self._adapter = adapter

    def measure_size(self, location: str) -> int | None:
        """Measures the bytes of all files at or below a location; 0 if there are none, None:
        unknown.

        It runs no Spark job, and a file system that Hadoop does not know (an object store behind
        Iceberg's own client) gives None.
        """
        try:
            spark: Any = self._adapter.spark
            path = spark._jvm.org.apache.hadoop.fs.Path(location)
            files = path.getFileSystem(spark._jsc.hadoopConfiguration())
            if not files.exists(path):
                return 0
            return int(files.getContentSummary(path).getLength())
        except Exception:
            return None


@dataclass(frozen=True, order=True)
class SparkRelation:
    """A schema-qualified name in one catalog."""

    catalog: str
    schema: str
    name: str

    @classmethod
    def parse_name(cls, text: str, default_catalog: str) -> SparkRelation:
        """Parses a name as SQLMesh writes it, in SQLGlot's own dialect.

        SQLMesh's adapters do the same. In Spark's dialect a backslash would begin an escape and
        change the name.
        """
        table = exp.to_table(text)
        return cls(table.catalog or default_catalog, table.db, table.name)

    @property
    def sql_text(self) -> str:
        return ".".join(
            quote_spark_identifier(part) for part in (self.catalog, self.schema, self.name)
        )

    @property
    def shown_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def schema_key(self) -> tuple[str, str]:
        """Equal for objects in one schema: Spark ignores case."""
        return self.catalog.lower(), self.schema.lower()

    @property
    def object_key(self) -> tuple[str, str, str]:
        """Equal for names of one object: Spark ignores case."""
        return *self.schema_key, self.name.lower()


@dataclass(frozen=True)
class SparkTableStorage:
    """A table's format ("iceberg", "parquet"; empty: unknown), and where its files are."""

    provider: str = ""
    location: str | None = None


def quote_spark_identifier(identifier: str) -> str:
    """Quotes an identifier for Spark; doubles a backtick inside."""
    return "`" + identifier.replace("`", "``") + "`"


class SparkCatalog:
    """Queries and single drops. Every method raises Spark's errors."""

    def __init__(self, sql: SparkCatalogSqlPort) -> None:
        self._sql = sql

    def schema_exists(self, catalog: str, schema: str) -> bool:
        pattern = schema.replace("'", "\\'")
        rows = self._sql.query_rows(
            f"SHOW NAMESPACES IN {quote_spark_identifier(catalog)} LIKE '{pattern}'"
        )
        # LIKE takes patterns (`_` is literal, `*` and `|` are not), so the answer is compared too.
        return any(str(row[0]).strip("`").lower() == schema.lower() for row in rows)

    def list_objects(self, catalog: str, schema: str) -> dict[str, ObjectKind]:
        """Lists all tables and views of a schema; empty if the schema does not exist."""
        tables = self._list_tables(catalog, schema)
        if tables is None:
            return {}
        # Depending on the catalog, SHOW TABLES lists views as well (Hive) or leaves them out
        # (Iceberg), so views are listed separately, and win.
        found: dict[str, ObjectKind] = dict.fromkeys(tables, "table")
        return found | dict.fromkeys(self._list_views(catalog, schema) or (), "view")

    def list_names(self, catalog: str, schema: str) -> set[str] | None:
        """Lists the names of all tables and views of a schema; None if the schema does not exist.

        It uses the fewest statements, because each takes tenths of a second in a fresh session.
        Spark's own catalog lists views among the tables, even with Iceberg's `SparkSessionCatalog`
        in front of it; other catalogs may not.
        """
        tables = self._list_tables(catalog, schema)
        if tables is None or catalog.lower() == SESSION_CATALOG:
            return tables
        if not tables and not self.schema_exists(catalog, schema):
            # Some catalogs list nothing for a missing schema.
            return None
        return tables | (self._list_views(catalog, schema) or set())

    def list_absent(self, relations: Iterable[SparkRelation]) -> list[SparkRelation]:
        """Lists the relations that do not exist, schema by schema."""
        wanted = sorted(relations)
        places = {relation.schema_key: relation for relation in wanted}
        there = {
            SparkRelation(each.catalog, each.schema, name).object_key
            for each in places.values()
            for name in self.list_names(each.catalog, each.schema) or ()
        }
        return [relation for relation in wanted if relation.object_key not in there]

    def holds_views(self, catalog: str, schema: str) -> bool:
        """Whether the catalog supports views; the schema need not exist."""
        # Iceberg's Hadoop catalog holds tables only, and answers SHOW VIEWS with nothing.
        (setting,) = self._sql.query_rows(
            f"SET {quote_spark_identifier(f'spark.sql.catalog.{catalog}.type')}"
        )
        if str(setting["value"]).lower() == "hadoop":
            return False
        try:
            return self._list_views(catalog, schema) is not None
        except Exception as error:
            if _mentions_any_spark_sign(error, _NO_SCHEMA):
                return True
            raise

    def _list_tables(self, catalog: str, schema: str) -> set[str] | None:
        """Runs SHOW TABLES; None if there is no such schema."""
        try:
            rows = self._sql.query_rows(
                f"SHOW TABLES IN {quote_spark_identifier(catalog)}.{quote_spark_identifier(schema)}"
            )
        except Exception as error:
            if _mentions_any_spark_sign(error, _NO_SCHEMA):
                return None
            raise
        return {str(row["tableName"]) for row in rows if not row["isTemporary"]}

    def _list_views(self, catalog: str, schema: str) -> set[str] | None:
        """Runs SHOW VIEWS; None if the catalog does not support views."""
        try:
            rows = self._sql.query_rows(
                f"SHOW VIEWS IN {quote_spark_identifier(catalog)}.{quote_spark_identifier(schema)}"
            )
        except Exception as error:
            if _mentions_any_spark_sign(error, _NO_VIEWS):
                return None
            raise
        return {str(row["viewName"]) for row in rows if not row["isTemporary"]}

    def drop_view(self, view: SparkRelation) -> bool:
        """Drops a view; returns False if there was none."""
        try:
            self._sql.query_rows(f"DROP VIEW {view.sql_text}")
        except Exception as error:
            if _mentions_any_spark_sign(error, _NO_VIEW):
                return False
            raise
        return True

    def drop_table(self, table: SparkRelation, *, purge: bool = False) -> None:
        """Drops a table. Iceberg keeps its files unless `purge` is set."""
        self._sql.query_rows(f"DROP TABLE IF EXISTS {table.sql_text}{' PURGE' if purge else ''}")

    def read_storage(self, table: SparkRelation) -> SparkTableStorage:
        """Reads how and where a table is stored, as far as the catalog says."""
        known = {
            str(row["col_name"]): str(row["data_type"])
            for row in self._sql.query_rows(f"DESCRIBE TABLE EXTENDED {table.sql_text}")
            if row["data_type"]
        }
        return SparkTableStorage(known.get("Provider", "").lower(), known.get("Location"))

    def drop_empty_schema(self, catalog: str, schema: str) -> None:
        """Drops a schema that holds nothing; never with CASCADE.

        What CASCADE does depends on the catalog. In Spark's own (Hive's, also with Iceberg's
        `SparkSessionCatalog` over it) it drops everything, other people's objects too. In Iceberg's
        own catalogs (seen with JDBC) Spark passes it on but they ignore it: they refuse a schema
        with a view or a table as "not empty", so SQLMesh's cleanup, which relies on CASCADE, leaves
        schema and views.
        """
        self._sql.query_rows(
            f"DROP SCHEMA IF EXISTS "
            f"{quote_spark_identifier(catalog)}.{quote_spark_identifier(schema)}"
        )

    def analyse_relation(self, relation: SparkRelation) -> None:
        """Lets Spark analyse a relation; raises if it does not resolve."""
        # Names come from SQLMesh's own naming, and `Relation.sql` quotes them.
        self._sql.query_rows(f"SELECT * FROM {relation.sql_text} LIMIT 0")  # noqa: S608 - quoted  # nosec B608

    def resolve_relations(
        self,
        relations: Iterable[SparkRelation],
        *,
        at_once: int = 1,
        analyse: Callable[[SparkRelation], None] | None = None,
    ) -> dict[SparkRelation, Exception | None]:
        """Lets Spark analyse each relation; the value is its error, None if it resolves.

        Args:
            at_once: How many relations are analysed at once. No analysis runs a job; the driver and
                the metastore do the work.
            analyse: How to analyse a relation, if the result is to be kept.
        """
        names = list(relations)
        ask = partial(_find_spark_analysis_error, analyse or self.analyse_relation)
        with ThreadPoolExecutor(at_once, thread_name_prefix="ci-bot-resolve") as pool:
            return dict(zip(names, pool.map(ask, names), strict=True))

    def count_rows(
        self, relations: Sequence[SparkRelation], names: Mapping[str, str] = MappingProxyType({})
    ) -> dict[SparkRelation, int]:
        """Counts the rows of relations, many in one statement, so that Spark counts in parallel.

        Args:
            names: The session's names of relations that it has already analysed, by their SQL.
        """
        found: dict[SparkRelation, int] = {}
        for first in range(0, len(relations), _COUNTED_TOGETHER):
            part = relations[first : first + _COUNTED_TOGETHER]
            named = [names.get(relation.sql_text, relation.sql_text) for relation in part]
            sql = " UNION ALL ".join(
                f"SELECT {index} AS position, COUNT(*) AS n FROM {name}"  # noqa: S608 - quoted  # nosec B608
                for index, name in enumerate(named)
            )
            found |= {part[int(row[0])]: int(row[1]) for row in self._sql.query_rows(sql)}
        return found


def _find_spark_analysis_error(
    analyse: Callable[[SparkRelation], None], relation: SparkRelation
) -> Exception | None:
    try:
        analyse(relation)
    except Exception as error:
        return error
    return None


def _mentions_any_spark_sign(error: Exception, signs: tuple[str, ...]) -> bool:
    text = f"{type(error).__name__} {error}"
    return any(sign in text for sign in signs)


# The schemas, views and physical tables of an environment.


def list_spark_views_of_environment(
    context: Context, environment: Environment
) -> dict[str, SparkRelation]:
    """Lists the view of each promoted model of an environment, by SQLMesh's own naming rule."""
    naming = environment.naming_info
    catalog, dialect = str(context.default_catalog), context.engine_adapter.dialect
    found = {}
    for info in sorted(environment.promoted_snapshots, key=lambda item: str(item.name)):
        if not info.is_model or info.is_symbolic:
            continue
        name = info.qualified_view_name.for_environment(naming, dialect=dialect)
        found[str(info.name)] = SparkRelation.parse_name(name, catalog)
    return found


def list_physical_spark_tables(
    snapshots: Iterable[Snapshot], deployable: DeployabilityIndex, default_catalog: str
) -> list[SparkRelation]:
    """Lists the tables that building `snapshots` fills: prod's future one, or the `__dev`
    preview.
    """
    return sorted(
        {
            SparkRelation.parse_name(
                snapshot.table_name(deployable.is_deployable(snapshot)), default_catalog
            )
            for snapshot in snapshots
            if snapshot.is_model and not snapshot.is_symbolic and snapshot.version
        }
    )
