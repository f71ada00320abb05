"""Values that differ when the same interval is computed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp
from sqlmesh.core import dialect as d

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.rules.models.linter_rule import ModelRule, on_model
from ci_bot.worker.rules.observation import RuleObservation, quote_names
from ci_bot.worker.sql import (
    ExpressionTree,
    ModelQuery,
    clock_calls,
    list_outer_scopes,
    place_of,
    random_calls,
)

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
# Variables of the interval, and of the moment of the run.
_TIMES = ("start_", "end_", "execution_")
PLACES_NAMED = 3
_EMPTY_CLOCKS = frozenset({"unix_timestamp", "to_unix_timestamp"})
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
    """A table that holds the clock cannot be computed again."""

    spec = find_rule("current-time")

    def find_observations(self, model: Any) -> Iterator[RuleObservation]:
        if model.is_python:
            if calls := clock_calls(model):
                yield self.make_observation(
                    model,
                    lambda calls: (
                        f"The Python model reads the clock ({quote_names(calls)}), so the same "
                        "interval gives another result tomorrow."
                    ),
                    "`execution_time` (or start and end) is used in its place",
                    subject=calls,
                    anchors=tuple(calls),
                )
            return
        query = self.query_of(model)
        found = _calls_of_all(query, _CLOCK, _CLOCK_NAMES, clock=True) if query else []
        if not found:
            return
        view = model.kind.is_view or model.kind.is_embedded
        effect = (
            "the view gives another result whenever it is read."
            if view
            else "a backfill of an old interval sees today's clock, so it gives another result "
            "than the run of that day."
            if model.kind.is_incremental
            else "two builds from the same data give different tables."
        )
        yield self.make_observation(
            model,
            lambda calls: f"{_in_words(calls)}: {effect}",
            "@execution_ts (or start and end) stands in its place",
            subject=found,
            severity="medium"
            if view or (query and _only_stamps(query, len(found), model))
            else None,
            anchors=(*_list_functions(found), *sorted(_CLOCK_NAMES)),
        )


@on_model
class RandomValue(ModelRule):
    """Chance makes keys and groups that change with every run."""

    spec = find_rule("random")

    def find_observations(self, model: Any) -> Iterator[RuleObservation]:
        if model.is_python:
            if calls := random_calls(model):
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
        found = _calls_of_all(query, _RANDOM, _RANDOM_NAMES, clock=False)
        found += [
            f"TABLESAMPLE in {place_of(sample, query)}"
            for sample in query.tree.find_all(exp.TableSample)
            if sample.args.get("seed") is None
        ]
        if found:
            yield self.make_observation(
                model,
                lambda calls: (
                    f"{_in_words(calls)}: every run gives other values, so rows cannot "
                    "be matched with those of an earlier run."
                ),
                "the value is computed from the row, for instance as a hash of its key",
                subject=found,
                anchors=(*_list_functions(found), *sorted(_RANDOM_NAMES)),
            )


def reads_clock(node: Any) -> bool:
    """Whether the clock is read anywhere in an expression, as it is written or rendered."""
    return any(node.find_all(*_CLOCK)) or any(
        call.name.lower() in _CLOCK_NAMES
        or (call.name.lower() in _EMPTY_CLOCKS and not call.expressions)
        for call in node.find_all(exp.Anonymous)
    )


def _only_stamps(query: ModelQuery, calls: int, model: Any) -> bool:
    """Whether every call of the clock is a result by itself, and decides nothing.

    It says when a row was written, and no other value or row depends on it. That is not so for what
    the table is stored or matched by.
    """
    items = [
        item for scope in list_outer_scopes(query.scopes) for item in scope.expression.expressions
    ]
    stamps = [item.alias_or_name.lower() for item in items if isinstance(_strip_cast(item), _CLOCK)]
    deciding = [*model.partitioned_by, *model.unique_key, *model.grains]
    if model.time_column is not None:
        deciding.append(model.time_column.column)
    used = {column.name.lower() for key in deciding for column in key.find_all(exp.Column)}
    return len(stamps) == calls and not used & {*stamps}


def _strip_cast(item: Any) -> Any:
    node = item.unalias()
    while isinstance(node, exp.Cast | exp.TryCast | exp.Paren):
        node = node.this
    return node


def _list_functions(calls: Sequence[str]) -> list[str]:
    """The functions of `NOW in WHERE` and the like, each once."""
    return list(dict.fromkeys(call.partition(" in ")[0] for call in calls))


def _in_words(calls: Sequence[str]) -> str:
    """`NOW` (in WHERE and column day)."""
    places = list(dict.fromkeys(call.partition(" in ")[2] for call in calls))
    rest = f" and {len(places) - PLACES_NAMED} more places" if len(places) > PLACES_NAMED else ""
    return f"{quote_names(_list_functions(calls))} (in {', '.join(places[:PLACES_NAMED])}{rest})"


def _calls_of_all(
    query: ModelQuery, types: tuple[Any, ...], named: frozenset[str], *, clock: bool
) -> list[str]:
    """The calls in a query, also those that variables put in, and macros only while it runs."""
    found = _list_clock_calls(query.tree, query, types, named, clock=clock)
    if _is_completed_later(query):
        known = Counter(call.partition(" in ")[0] for call in found)
        run = ExpressionTree(query.rendered_apart)
        for call in _list_clock_calls(run, query, types, named, clock=clock):
            name = call.partition(" in ")[0]
            known[name] -= 1
            if known[name] < 0:
                found.append(call)
    return found


def _is_completed_later(query: ModelQuery) -> bool:
    """Whether a variable or a macro that is none of the interval stands in the query."""
    if query.written is None or query.hides_structure:
        return True
    return any(
        not var.name.lower().startswith(_TIMES) for var in query.written_tree.find_all(d.MacroVar)
    )


def _list_clock_calls(
    tree: ExpressionTree,
    query: ModelQuery,
    types: tuple[Any, ...],
    named: frozenset[str],
    *,
    clock: bool,
) -> list[str]:
    """Function calls of the kind, each with its place: `NOW in WHERE`.

    Functions are called as the dialect writes them; strings and names never count.
    """
    found: list[tuple[str, Any]] = []
    for node in tree.find_all(*types):
        if clock or not _is_seeded(node):
            found.append((node.sql_name(), node))
    for node in tree.find_all(exp.Anonymous):
        name, arguments = node.name.lower(), node.expressions
        if (name in named and (clock or not _is_constant(arguments))) or (
            clock and name in _EMPTY_CLOCKS and not arguments
        ):
            found.append((node.name.upper(), node))
    if clock:
        found += [
            ("UNIX_TIMESTAMP", node)
            for node in tree.find_all(exp.StrToUnix)
            if node.args.get("this") is None
        ]
    return [f"{name} in {place_of(node, query)}" for name, node in found]


def _is_seeded(node: Any) -> bool:
    return isinstance(node.this, exp.Literal) and not isinstance(node, getattr(exp, "Uuid", ()))


def _is_constant(arguments: list[Any]) -> bool:
    return bool(arguments) and all(isinstance(item, exp.Literal) for item in arguments)
