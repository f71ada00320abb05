"""Values that differ if the same interval is computed twice: the clock, and random values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule, quote_names
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation
from ci_bot.worker.sql import (
    SENTINEL_END,
    SENTINEL_NOW,
    ExpressionTree,
    ModelQuery,
    enter_casts,
    find_clock_calls_in,
    find_random_calls_in,
    iterate_code_trees,
    name_query_part,
    read_selects,
    reads_argument,
)
from ci_bot.worker.sqlmesh_compat import is_python_model, is_scd_type_2, is_scd_type_2_by_column

if TYPE_CHECKING:
    from sqlmesh.core.model import Model, PythonModel

_BY_THE_INTERVAL = "@start_ts or @end_ts is used instead"

_CLOCK = tuple(
    getattr(exp, name)
    for name in (
        "CurrentDate", "CurrentDatetime", "CurrentTime", "CurrentTimestamp", "CurrentTimestampLTZ",
        "Localtime", "Localtimestamp", "UtcDate", "UtcTime", "UtcTimestamp", "Systimestamp",
    )
    if hasattr(exp, name)
)  # fmt: skip
_CLOCK_NAMES = frozenset(
    {
        "now", "getdate", "sysdate", "sysdatetime", "systimestamp", "curdate", "current_date",
        "current_timestamp", "current_datetime", "current_time", "localtimestamp", "localtime",
        "clock_timestamp", "statement_timestamp", "transaction_timestamp", "today", "getutcdate",
    }
)  # fmt: skip
# Variables of the interval, and of the time of the run.
_OF_THE_RUN = ("execution_", "latest_")  # SQLMesh keeps the second for old projects
_TIMES = ("start_", "end_", *_OF_THE_RUN)
# The time of the run in `ModelQuery.rendered_apart`: a text, or a number since 1970 (seconds or
# finer).
_VALUES_OF_THE_RUN = (
    SENTINEL_NOW,
    str(int(datetime.fromisoformat(f"{SENTINEL_NOW}T00:00:00+00:00").timestamp())),
)
_ORDERINGS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
PLACES_NAMED = 3
_EMPTY_CLOCKS = frozenset({"unix_timestamp", "to_unix_timestamp"})
# Spark reads such a text as the clock in any place where it becomes a date or a time, with or
# without a zone.
_CLOCK_WORD = re.compile(r"\s*(now|today|yesterday|tomorrow)(\s+\S+)?\s*", re.IGNORECASE)
_BECOMES_TIME = (
    exp.Cast, exp.TryCast, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.Date, exp.StrToDate,
    exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.DateDiff, exp.DateAdd, exp.DateSub,
    exp.TsOrDsAdd, exp.TsOrDsDiff,
)  # fmt: skip
_RANDOM = tuple(
    getattr(exp, name) for name in ("Rand", "Randn", "Uuid", "RandStr", "Randstr")
    if hasattr(exp, name)
)  # fmt: skip
_RANDOM_NAMES = frozenset(
    {
        "rand", "random", "randn", "uuid", "newid", "gen_random_uuid", "generate_uuid", "shuffle",
        "uuid_string", "monotonically_increasing_id", "spark_partition_id", "randstr", "uniform",
    }
)  # fmt: skip


@on_model
class CurrentTime(ModelRule):
    """A table with values of the clock cannot be computed again."""

    spec = find_rule("current-time")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if is_python_model(model):
            if calls := find_clock_calls_in(list(iterate_code_trees(model))):
                yield self.make_observation(
                    model,
                    lambda calls: (
                        f"The Python model reads the clock ({quote_names(calls)}), so the same "
                        "interval gives another result tomorrow."
                    ),
                    "`execution_time` (or start and end) is used instead",
                    subject=calls,
                    anchors=tuple(calls),
                )
            yield from self._observe_python_run_time(model)
            return
        query = self.query_of(model)
        if query is None:
            return
        yield from self._observe_run_time(model, query)
        found = _list_calls_of_query_and_run(query, _CLOCK, _CLOCK_NAMES, clock=True)
        if not found:
            return
        view = model.kind.is_view or model.kind.is_embedded
        incremental = model.kind.is_incremental
        effect = (
            "the view gives another result whenever it is read."
            if view
            else "a backfill of an old interval sees today's clock, so it gives another result "
            "than the run of that day."
            if incremental
            else "two builds from the same data give different tables."
        )
        yield self.make_observation(
            model,
            lambda calls: f"{_name_clock_calls(calls)}: {effect}",
            _BY_THE_INTERVAL if incremental else "@execution_ts (or start and end) is used instead",
            subject=found,
            severity="medium" if view or _is_only_stamp(query, len(found), model) else None,
            anchors=(*_list_functions(found), *sorted(_CLOCK_NAMES)),
        )

    def _observe_python_run_time(self, model: PythonModel) -> Iterator[RuleObservation]:
        """Observes Python code that reads the time of the run: its use cannot be seen."""
        if not model.kind.is_incremental or model.forward_only:
            return
        if reads_argument(model, "execution_time"):
            yield self.make_observation(
                model,
                "The Python model reads `execution_time`, which is the time of the run and not of "
                "the interval: if it decides rows or values, a run that computes old intervals "
                "again gives other ones than the runs of those days did.",
                "`start` or `end` is used instead, or it only says when a row was written",
                subject=["execution_time"],
                severity="medium",
                anchors=("execution_time",),
            )

    def _observe_run_time(self, model: Model, query: ModelQuery) -> Iterator[RuleObservation]:
        """Observes @execution_ts and the like: a later run may compute old intervals again."""
        versioned = model.kind.is_scd_type_2
        if not model.kind.is_incremental or (model.forward_only and not versioned):
            return
        found = _list_run_time_variables(query, model)
        if found:
            yield self.make_observation(
                model,
                lambda calls: (
                    f"{_name_clock_calls(calls)}: each run has another value, and versions of rows "
                    "are made by it, so every run closes all rows and opens them again."
                    if versioned
                    else f"{_name_clock_calls(calls)}: it is the time of the run and not "
                    f"of the "
                    "interval. A run that computes old intervals again gives them other rows than "
                    "the runs of those days did, or none."
                ),
                "the column does not take part in making versions"
                if versioned
                else _BY_THE_INTERVAL,
                subject=found,
                anchors=tuple(_list_functions(found)),
            )


@on_model
class RandomValue(ModelRule):
    """Random values change keys and groups in every run."""

    spec = find_rule("random")

    def find_observations(self, model: Model) -> Iterator[RuleObservation]:
        if model.is_python:
            if calls := find_random_calls_in(list(iterate_code_trees(model))):
                yield self.make_observation(
                    model,
                    lambda calls: (
                        "The Python model uses chance without a fixed seed "
                        f"({quote_names(calls)}), so each run gives another result."
                    ),
                    "the generator has a fixed seed, or the value is a hash of the key",
                    subject=calls,
                    anchors=tuple(calls),
                )
            return
        query = self.query_of(model)
        if query is None:
            return
        found = _list_calls_of_query_and_run(query, _RANDOM, _RANDOM_NAMES, clock=False)
        found += [
            f"TABLESAMPLE in {name_query_part(sample, query)}"
            for sample in query.tree.find_all(exp.TableSample)
            if sample.args.get("seed") is None
        ]
        if found:
            yield self.make_observation(
                model,
                lambda calls: (
                    f"{_name_clock_calls(calls)}: every run gives other values, so rows cannot be "
                    "matched with those of an earlier run."
                ),
                "the value is computed from the row, for instance as a hash of its key",
                subject=found,
                anchors=(*_list_functions(found), *sorted(_RANDOM_NAMES)),
            )


def does_model_read_clock(node: exp.Expr) -> bool:
    """Whether an expression, written or rendered, reads the clock in any part."""
    return (
        any(node.find_all(*_CLOCK))
        or any(map(_is_clock_word, node.find_all(exp.Literal)))
        or any(
            call.name.lower() in _CLOCK_NAMES
            or (call.name.lower() in _EMPTY_CLOCKS and not call.expressions)
            for call in node.find_all(exp.Anonymous)
        )
    )


def _is_clock_word(literal: exp.Literal) -> bool:
    """Whether Spark reads a text as the clock: `CAST('today' AS DATE)`, or `due < 'now'`."""
    if not literal.is_string or not _CLOCK_WORD.fullmatch(literal.name):
        return False
    above = literal.parent
    if isinstance(above, exp.Cast | exp.TryCast):
        return above.to.this in exp.DataType.TEMPORAL_TYPES
    return isinstance(above, _BECOMES_TIME)


def _is_only_stamp(query: ModelQuery, calls: int, model: Model) -> bool:
    """Whether every call of the clock is a result column that only says when a row was written.

    No other value or row depends on such a column. A column by which the table is stored or matched
    is no such column.
    """
    stamps = [
        name
        for branch in query.scopes.branches
        for name, item in branch.results
        if isinstance(enter_casts(item), _CLOCK)
    ]
    return len(stamps) == calls and not any(
        _does_column_decide_rows(name, model) for name in stamps
    )


def _does_column_decide_rows(column: str, model: Model) -> bool:
    """Whether rows are stored, matched or versioned by a column of the model."""
    kind = model.kind
    keys = [*model.partitioned_by, *model.unique_key, *model.grains]
    if model.time_column is not None:
        keys.append(model.time_column.column)
    if is_scd_type_2_by_column(kind):
        versioned = kind.columns if isinstance(kind.columns, list) else [kind.columns]
        if any(key.find(exp.Star) is not None for key in versioned):
            return True
        keys += versioned
    elif is_scd_type_2(kind) and kind.updated_at_name is not None:
        keys.append(kind.updated_at_name)
    return column in {used.name.lower() for key in keys for used in key.find_all(exp.Column)}


def _list_run_time_variables(query: ModelQuery, model: Model) -> list[str]:
    """Lists variables of the run's time that affect rows or values, each with its position.

    A template has no variables with a position; for it the values that a run inserts are listed.
    """
    if query.written is None:
        root = read_selects(query.rendered_apart)
        times = [
            ("execution_ts", literal)
            for literal in ExpressionTree(query.rendered_apart).find_all(exp.Literal)
            if literal.name.startswith(_VALUES_OF_THE_RUN)
        ]
    else:
        root = query.written_root
        times = [
            (f"@{var.name.lower()}", var)
            for var in query.written_tree.find_all(d.MacroVar)
            if var.name.lower().startswith(_OF_THE_RUN)
        ]
    stamps: set[int] = set()
    for branch in root.branches:
        for name, item in branch.results:
            if item.find(exp.Column) is None and not _does_column_decide_rows(name, model):
                stamps.update(id(node) for node in item.find_all(d.MacroVar, exp.Literal))
    return [
        f"{name} in {name_query_part(node, query)}"
        for name, node in times
        if id(node) not in stamps
        and not (model.kind.is_scd_type_2 and not _is_in_deciding_column(node, query, model))
        and not _is_upper_bound(node)
    ]


def _is_in_deciding_column(var: exp.Expr, query: ModelQuery, model: Model) -> bool:
    place = name_query_part(var, query)
    return place.startswith("column ") and _does_column_decide_rows(
        place.removeprefix("column ").lower(), model
    )


def _is_upper_bound(var: exp.Expr) -> bool:
    """Whether a condition only removes rows that are later than the run: no old row is later."""
    below, above = var, var.parent
    while above is not None and not isinstance(above, (*_ORDERINGS, exp.Between, exp.Select)):
        if isinstance(above, exp.Least):
            return any(
                other.name.lower().startswith("end_") for other in above.find_all(d.MacroVar)
            ) or any(item.name.startswith(SENTINEL_END) for item in above.find_all(exp.Literal))
        below, above = above, above.parent
    if above is None or isinstance(above, exp.Select) or below.find(exp.Column) is not None:
        return False
    upper = (
        below.arg_key == "high"
        if isinstance(above, exp.Between)
        else isinstance(above, exp.LT | exp.LTE) is (below.arg_key == "expression")
    )
    return upper and _is_condition_on_rows(above)


def _is_condition_on_rows(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    return isinstance(above, exp.Where | exp.Having | exp.Qualify | exp.Join)


def _list_functions(calls: Sequence[str]) -> list[str]:
    """Lists the functions in texts such as `NOW in WHERE`, each once."""
    return list(dict.fromkeys(call.partition(" in ")[0] for call in calls))


def _name_clock_calls(calls: Sequence[str]) -> str:
    """Describes calls for a sentence: `NOW` (in WHERE and column day)."""
    places = list(dict.fromkeys(call.partition(" in ")[2] for call in calls))
    rest = f" and {len(places) - PLACES_NAMED} more places" if len(places) > PLACES_NAMED else ""
    return f"{quote_names(_list_functions(calls))} (in {', '.join(places[:PLACES_NAMED])}{rest})"


def _list_calls_of_query_and_run(
    query: ModelQuery, types: tuple[type[exp.Expr], ...], named: frozenset[str], *, clock: bool
) -> list[str]:
    """Lists the calls in a query, also those that variables, or macros in a run, insert."""
    found = _list_clock_calls(query.tree, query, types, named, clock=clock)
    if _is_query_completed_later(query):
        known = Counter(call.partition(" in ")[0] for call in found)
        run = ExpressionTree(query.rendered_apart)
        for call in _list_clock_calls(run, query, types, named, clock=clock):
            name = call.partition(" in ")[0]
            known[name] -= 1
            if known[name] < 0:
                found.append(call)
    return found


def _is_query_completed_later(query: ModelQuery) -> bool:
    """Whether the query has a variable or a macro other than those of the interval."""
    if query.written is None or query.hides_structure:
        return True
    return any(
        not var.name.lower().startswith(_TIMES) for var in query.written_tree.find_all(d.MacroVar)
    )


def _list_clock_calls(
    tree: ExpressionTree,
    query: ModelQuery,
    types: tuple[type[exp.Expr], ...],
    named: frozenset[str],
    *,
    clock: bool,
) -> list[str]:
    """Functions have the dialect's names; strings and names of columns never count as calls."""
    found: list[tuple[str, Any]] = []
    for node in tree.find_all(*types):
        if clock or not _is_random_call_seeded(node):
            found.append((node.sql_name(), node))
    for node in tree.find_all(exp.Anonymous):
        name, arguments = node.name.lower(), node.expressions
        if (name in named and (clock or not _are_constant_arguments(arguments))) or (
            clock and name in _EMPTY_CLOCKS and not arguments
        ):
            found.append((node.name.upper(), node))
    if clock:
        found += [
            ("UNIX_TIMESTAMP", node)
            for node in tree.find_all(exp.StrToUnix)
            if node.args.get("this") is None
        ]
        found += [
            (f"'{node.name.strip().lower()}'", node)
            for node in tree.find_all(exp.Literal)
            if _is_clock_word(node)
        ]
    return [f"{name} in {name_query_part(node, query)}" for name, node in found]


def _is_random_call_seeded(node: exp.Expr) -> bool:
    return isinstance(node.this, exp.Literal) and not isinstance(node, getattr(exp, "Uuid", ()))


def _are_constant_arguments(arguments: list[Any]) -> bool:
    return bool(arguments) and all(isinstance(item, exp.Literal) for item in arguments)
