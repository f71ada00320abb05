"""Partitions, starts, sizes and merges: the stored table of a model.

On Spark, partitions decide which rows a run replaces, and how many files there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlmesh.core.node import IntervalUnit
from sqlmesh.utils.date import now, to_datetime

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.project import describe_merge_obstacle_in_project
from ci_bot.worker.rules.models.declared_keys import list_grains, split_column_name_into_words
from ci_bot.worker.rules.models.linter_rule import ModelRule, is_computed_table, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import find_interval_bounds, list_column_names
from ci_bot.worker.sqlmesh_compat import is_incremental_unmanaged

if TYPE_CHECKING:
    from sqlmesh.core.model import Model

# Dialects whose adapter replaces intervals with INSERT OVERWRITE, which takes whole partitions.
OVERWRITING = frozenset({"spark", "spark2", "databricks", "hive"})
# Endings of an id. A short code, such as that of a country, identifies a row of a small table, and
# is no such id.
_ENDINGS_OF_ID = ("_id", "_uuid", "_key", "_sk")
# Things of which a company has few, so tables are partitioned by them.
_OF_FEW = frozenset({
    "tenant", "region", "country", "market", "site", "store", "shop", "warehouse", "plant", "brand",
    "company", "organization", "org", "source", "system", "channel",
})  # fmt: skip
# Types whose values hardly ever repeat.
_FINE = frozenset({"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME",
                   "DOUBLE", "FLOAT", "UUID"})  # fmt: skip


@on_model
class PartitionsWithoutTime(ModelRule):
    """A run replaces whole partitions, so they must not hold rows of other intervals."""

    spec = find_rule("partitions-without-time")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.dialect not in OVERWRITING:
            return
        if model.kind.is_incremental_by_time_range:
            yield from self._find_mixed_partitions(model)
        elif model.kind.is_incremental_by_partition or (
            is_incremental_unmanaged(kind := model.kind) and kind.insert_overwrite
        ):
            yield from self._find_partial_partitions(model)

    def _find_partial_partitions(self, model: Model) -> Iterator[RuleObservation]:
        """Observes a query that returns a part of a partition, but the run replaces all of it."""
        query = self.query_of(model)
        bounds = find_interval_bounds(query) if query is not None else None
        if query is None or bounds is None or not bounds.is_bounded:
            return
        filtered = {name for _, name in bounds.columns}
        for part in model.partitioned_by:
            for column in _list_partition_columns(part):
                made_of = {name for _, name in query.scopes.find_origins(column.name)}
                whole = count_seconds_in_partition(part) <= model.interval_unit.seconds
                if whole and filtered & (made_of | {column.name.lower()}):
                    return
        if filtered:
            by = quote_names(list_column_names(list(model.partitioned_by)))
            yield self.make_observation(
                model,
                f"A run replaces each partition ({by}) that the query delivers, and the query "
                f"delivers the rows of an interval of {quote_names(filtered)}: the other rows of "
                "these partitions are gone.",
                "the query delivers whole partitions: those IN a subquery of the changed rows",
                subject=sorted(filtered),
                anchors=("@start_ds", "@start_ts", "@start_dt", "@start_date", "WHERE"),
            )

    def _find_mixed_partitions(self, model: Model) -> Iterator[RuleObservation]:
        if model.time_column is None:
            return
        time = model.time_column.column.name.lower()
        parts = list(model.partitioned_by)
        by_time = [
            part
            for part in parts
            if any(column.name.lower() == time for column in _list_partition_columns(part))
        ]
        unit = model.interval_unit
        if any(count_seconds_in_partition(part) <= unit.seconds for part in by_time):
            return
        if by_time:
            shown = quote_names([part.sql(dialect=model.dialect) for part in by_time])
            by = f"partitioned by {shown}, which is coarser than an interval of the model"
        elif parts:
            by = f"partitioned by {quote_names(list_column_names(parts))}, without the time column "
            by += f"`{time}`"
        else:
            by = f"not partitioned, not by the time column `{time}` either"
        yield self.make_observation(
            model,
            f"The table is {by}: a run of some intervals overwrites whole partitions, and with "
            "them the rows of all other intervals.",
            f"`{time}` itself is among the partitions (SQLMesh adds it unless "
            "`partitioned_by` names it or partition_by_time_column is false)",
            anchors=("partition_by_time_column", "partitioned_by"),
        )


_SECONDS = {
    "YEAR": IntervalUnit.YEAR.seconds,
    "QUARTER": 3 * IntervalUnit.MONTH.seconds,
    "MONTH": IntervalUnit.MONTH.seconds,
    "WEEK": 7 * IntervalUnit.DAY.seconds,
    "DAY": IntervalUnit.DAY.seconds,
    "HOUR": IntervalUnit.HOUR.seconds,
}
# The spellings of `trunc` and `date_trunc`, from Spark's documentation.
_UNITS = {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY"}
# A text such as 20240101 has this many characters; several days share a shorter beginning.
_CHARACTERS_OF_A_DAY = 8


def count_seconds_in_partition(part: exp.Expr) -> float:
    """Returns the length in seconds of the time whose rows share a partition; 0 if it is unknown.

    Iceberg's transforms are `years`, `months`, `days`, `hours` (also without the s), `bucket` and
    `truncate`. A bucket has rows of any time, so its length is infinite.
    """
    if isinstance(part, exp.PartitionedByBucket):
        return float("inf")
    if isinstance(part, exp.PartitionByTruncate):
        width = part.expression
        few = isinstance(width, exp.Literal) and int(width.this) < _CHARACTERS_OF_A_DAY
        return float("inf") if few else 0
    if isinstance(part, exp.TimestampTrunc | exp.DateTrunc):
        unit = str(part.args["unit"].name).upper()
        return _SECONDS.get(_UNITS.get(unit, unit), 0)
    name = part.name if isinstance(part, exp.Anonymous) else type(part).__name__
    return _SECONDS.get(name.upper().removesuffix("S"), 0)


@on_model
class PartitionPerRow(ModelRule):
    """Every partition is a directory with a file of its own."""

    spec = find_rule("partition-per-row")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if not is_computed_table(model) or not model.partitioned_by:
            return
        types = model.columns_to_types or {}
        keys = {*_iterate_single_keys(model), *self._iterate_ids_of_other_models()}
        # SQLMesh itself partitions by the time column, which may have any type.
        time = model.time_column.column.name.lower() if model.time_column else None
        fine = []
        for part in model.partitioned_by:
            if not isinstance(part, exp.Column) or part.name.lower() == time:
                continue  # a transform such as bucket or days makes it coarse
            name = part.name.lower()
            kind = types.get(part.name) or types.get(name)
            if name in keys or (kind is not None and kind.this.value in _FINE):
                fine.append(name)
        if fine:
            yield self.make_observation(
                model,
                f"Partitioned by {quote_names(fine)}, which has about as many values as a table "
                "has rows: each of them becomes a directory with a file, for the metastore and "
                "every reader.",
                "the partitions are coarse, such as a day, and the rest is clustered or bucketed",
                subject=sorted(fine),
                anchors=("partitioned_by", *fine),
            )

    def _iterate_ids_of_other_models(self) -> Iterator[str]:
        """Yields ids that identify a row of another model, such as a customer; no ids of seeds."""
        for other in self.project.by_table.values():
            if not other.kind.is_seed:
                keys = _iterate_single_keys(other)
                yield from (column for column in keys if _has_many_values(column))


def _has_many_values(column: str) -> bool:
    """Whether the name shows that an id is one of many: of a customer, and not of a region."""
    return column.endswith(_ENDINGS_OF_ID) and _OF_FEW.isdisjoint(
        split_column_name_into_words(column)
    )


def _iterate_single_keys(model: Model) -> Iterator[str]:
    return (key for keys in _list_partition_keys(model) if len(keys) == 1 for key in keys)


def _list_partition_keys(model: Model) -> list[frozenset[str]]:
    found = [frozenset(grain) for grain in list_grains(model)]
    unique = frozenset(list_column_names(list(model.unique_key or [])))
    return [*found, unique] if unique else found


def _list_partition_columns(part: exp.Expr) -> list[exp.Column]:
    return [part] if isinstance(part, exp.Column) else list(part.find_all(exp.Column))


# Starts and sizes: how much is computed, and from which day.


MANY_ROWS = 1_000_000
MAX_DEPTH = 50


@on_model
class NoStart(ModelRule):
    """An incremental model without a start begins yesterday, or at the start of its parents."""

    spec = find_rule("no-start")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        yield from self._observe_distant_start(model)
        kind = model.kind
        incremental = (
            kind.is_incremental_by_time_range
            or kind.is_incremental_by_unique_key
            or kind.is_scd_type_2
            or kind.is_incremental_by_partition
        )
        if not incremental or model.start is not None:
            return
        inherited = self._inherits_start(model)
        yield self.make_observation(
            model,
            "No `start`, neither here nor in model_defaults: the history begins where that of its "
            "parents does."
            if inherited
            else "No `start`, neither here nor in model_defaults nor above: the history begins "
            "yesterday, and everything older is never computed.",
            "the model, or model_defaults, has a `start`",
            severity="low" if inherited else None,
            anchors=("kind",),
        )

    def _observe_distant_start(self, model: Model) -> Iterator[RuleObservation]:
        """Observes a start in the future: no interval is due until then."""
        kind = model.kind
        if model.start is None or kind.is_external or kind.is_seed or kind.is_symbolic:
            return
        if to_datetime(model.start) > now():
            yield self.make_observation(
                model,
                f"The `start` {model.start} is in the future: until then no interval is computed, "
                "the table stays empty, and nothing fails.",
                "the `start` is the first day of the data",
                subject=["start ahead"],
                anchors=("start",),
            )

    def _inherits_start(self, model: Model) -> bool:
        seen: set[str] = set()
        queue = list(model.depends_on)
        while queue and len(seen) < MAX_DEPTH:
            name = queue.pop()
            if name in seen:
                continue
            seen.add(name)
            parent = self.project.get_model(name)
            if parent is None or parent.kind.is_external:
                continue
            if parent.start is not None:
                return True
            queue.extend(parent.depends_on)
        return False


@on_model
class HugeFullModel(ModelRule):
    """FULL builds everything again in every run."""

    spec = find_rule("huge-full-model")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        rows = self.project.row_counts.get(model.fqn)
        if model.kind.is_full and rows is not None and rows > MANY_ROWS:
            yield self.make_observation(
                model,
                f"{rows:,} rows are computed and written again in each run.",
                "the model is incremental, or stays below a million rows",
                anchors=("kind FULL", "kind"),
            )
        growing = self._list_growing_sources(model) if model.kind.is_full else []
        if growing:
            runs = round(IntervalUnit.DAY.seconds / model.interval_unit.seconds)
            yield self.make_observation(
                model,
                f"{runs} times a day the whole history of {quote_names(growing)} is read again, "
                "and it grows with each interval.",
                "the model is incremental, or its cron is that of a day",
                severity="high",
                subject=growing,
                anchors=("cron", "kind FULL", "kind"),
            )

    def _list_growing_sources(self, model: Model) -> list[str]:
        """Lists the sources that grow with time, if the model is computed several times a day."""
        seconds = model.interval_unit.seconds
        if seconds >= IntervalUnit.DAY.seconds:
            return []
        sources = filter(None, map(self.project.get_model, sorted(model.depends_on)))
        return [
            self.project.names.short_name(source.fqn)
            for source in sources
            if source.kind.is_incremental_by_time_range
            or is_incremental_unmanaged(source.kind)
            # A table of things grows more slowly than one of events.
            or (source.kind.is_incremental_by_unique_key and seconds < IntervalUnit.HOUR.seconds)
        ]


# Tables into which SQLMesh merges although Spark cannot.


@on_model
class MergeUnsupported(ModelRule):
    """The first batch replaces the table; the second one is a MERGE."""

    spec = find_rule("merge-unsupported")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.kind.is_managed and model.dialect in OVERWRITING:
            yield self.make_observation(
                model,
                "The kind is MANAGED, and Spark has no managed tables: SQLMesh builds an ordinary "
                "table in an environment, and in prod it cannot create the model.",
                "the kind is another one, such as FULL or VIEW",
                subject=["managed"],
                anchors=("MANAGED", "kind"),
            )
        why = describe_merge_obstacle_in_project(model, self.project.gateways)
        if why is not None:
            yield self.make_observation(
                model,
                f"SQLMesh merges into this model, and {why}. The first batch replaces the table "
                "and works; each later one fails, also the next run of prod.",
                "the model, or model_defaults, names a `table_format` that takes a MERGE (iceberg) "
                "or `storage_format delta`, or the kind is another one",
                anchors=("INCREMENTAL_BY_UNIQUE_KEY", "kind"),
            )
