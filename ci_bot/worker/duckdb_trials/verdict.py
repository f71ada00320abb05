"""The verdict on two queries after running them: a difference, none found, or not run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from sqlglot import exp

from ci_bot.worker.duckdb_trials.closed_session import (
    ClosedDuckdbSession,
    DuckdbOutOfTimeError,
    UnusableDuckdbDataError,
    open_closed_duckdb_session,
)
from ci_bot.worker.duckdb_trials.functions import AGGREGATE_NAMES, FUNCTIONS
from ci_bot.worker.duckdb_trials.generated_rows import (
    MOST_ROWS,
    DataSet,
    DuckdbRowGenerator,
    list_plain_values,
)
from ci_bot.worker.duckdb_trials.plain_parser import parse_duckdb_plainly
from ci_bot.worker.duckdb_trials.queries import WrittenDuckdbQuery, write_duckdb_query
from ci_bot.worker.duckdb_trials.query_constants import QueryConstants, read_constants
from ci_bot.worker.duckdb_trials.query_scopes import MODE, SourceTable
from ci_bot.worker.duckdb_trials.value_types import UntriedError, ValueType

Row = tuple[Any, ...]
# The rows of both sides, each with the number of times that it occurs.
Results = tuple[Counter[Any], Counter[Any]]
Verdict = Literal["differs", "alike", "not_tried"]
SECONDS_FOR_A_MODEL = 2.0
DATA_SETS = 60
# Wide data sets come after the first small ones, which find nearly every difference and make the
# shortest examples.
_WIDE_DATA_SETS = frozenset({9, 24, 39})
_DISTINCT_STEP = 5
# Those about the ends of types, which are of no use if they make a number too large.
_DATA_SETS_OF_ENDS = frozenset({14, 22, 32, 44, 50, 57})
# The number of data sets without any result row before rows are made that fit each other.
_FRUITLESS = 6
# The number of row orders in which a result that depends on them would hardly be the same by
# chance.
_MANY_MODES = 24
_MOST_CHANCES = 6
NO_ROWS = "rows that no generated data let through"
ORDER_OF_ONE_SIDE = "an order of rows that decides the result of one side only"
# Orders of rows; a result that does not depend on the order is the same in all of them.
_MODES = (1, 2, 3, 4)
_FEWEST = 10
_SMALLER_RUNS = 400


class DuckdbFields(tuple[tuple[str, Any], ...]):
    """A struct in a result: its fields with their names."""

    __slots__ = ()


@dataclass(frozen=True)
class DuckdbExampleTable:
    """The generated rows of a table that a query reads, by the columns that it reads."""

    name: str
    columns: tuple[tuple[str, ValueType], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class FoundDuckdbExample:
    """The smallest rows found on which two queries differ, and both results.

    Attributes:
        columns: the columns of both results.
        rows: the rows of the results before and after, side by side; None if one side has no such
            row.
        differing: the columns in which they differ; empty if only the number of rows differs.
    """

    tables: tuple[DuckdbExampleTable, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[Row | None, Row | None], ...]
    differing: tuple[str, ...]


@dataclass(frozen=True)
class DuckdbTrialVerdict:
    """The answer of the judge.

    Attributes:
        data_sets: the number of data sets for which at least one side gives rows.
        reason: why the queries were not run, as a part of a sentence.
    """

    verdict: Verdict
    data_sets: int = 0
    reason: str = ""
    example: FoundDuckdbExample | None = None


def judge_queries_on_duckdb(
    before: str,
    after: str,
    tables: Mapping[str, Mapping[str, ValueType]],
    *,
    seed: str,
    seconds: float = SECONDS_FOR_A_MODEL,
    data_sets: int = DATA_SETS,
    is_private: Callable[[str], bool] = lambda name: False,
) -> DuckdbTrialVerdict:
    """Runs two queries of Spark on generated rows, and returns the verdict.

    Args:
        before, after: their texts, as Spark gets them.
        tables: the columns of the tables that they read, by name in lower case.
        seed: the same seed gives the same rows.
        seconds: the processor time that it may take.
        data_sets: the number of data sets to try.
        is_private: whether a column may hold private data; its values are then invented, without
            constants of the queries.
    """
    try:
        sources = {
            name: SourceTable(f"source {place}", columns)
            for place, (name, columns) in enumerate(sorted(tables.items()))
        }
        trees = [parse_duckdb_plainly(text) for text in (before, after)]
        try:
            sides = (write_duckdb_query(trees[0], sources), write_duckdb_query(trees[1], sources))
        except UntriedError:
            smaller = _drop_equal_duckdb_columns(trees[0], trees[1])
            if smaller is None:
                raise
            trees = list(smaller)
            sides = (write_duckdb_query(trees[0], sources), write_duckdb_query(trees[1], sources))
        judge = _DuckdbJudge(sides, sources, read_constants(trees), seed, is_private)
        with open_closed_duckdb_session(seconds) as session:
            return judge.try_data_sets(session, data_sets)
    except UntriedError as error:
        return DuckdbTrialVerdict("not_tried", reason=str(error))
    except Exception as error:  # a review continues without its judge
        return DuckdbTrialVerdict(
            "not_tried", reason=f"what the judge failed on ({type(error).__name__})"
        )


# Results that make several rows or columns of one: then all results belong together.
_MULTIPLYING = (exp.UDTF, exp.Explode, exp.Inline, exp.Aliases, exp.Star)
_MULTIPLYING_NAMES = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ]
)


def _drop_equal_duckdb_columns(
    before: exp.Expr, after: exp.Expr
) -> tuple[exp.Expr, exp.Expr] | None:
    """Drops the columns that are the same in both queries; None if that is not safe.

    If all other clauses are the same, too, these columns give the same, even if the judge does not
    know them.
    """
    if not isinstance(before, exp.Select) or not isinstance(after, exp.Select):
        return None
    sides = (before, after)
    clauses = [{k: v for k, v in side.args.items() if k != "expressions"} for side in sides]
    if clauses[0] != clauses[1] or _needs_all_results_in_duckdb_trial(before):
        return None
    # Clauses or other results that may name a result.
    bare = {c.name.lower() for side in sides for c in side.find_all(exp.Column) if not c.table}
    if any(_makes_more_rows_in_duckdb_trial(item) for side in sides for item in side.selects):
        return None
    dropped = [
        item
        for item in before.selects
        if item in after.selects and item.alias_or_name.lower() not in bare
    ]
    kept = [[item for item in side.selects if item not in dropped] for side in sides]
    if not dropped or not all(kept):
        return None
    if before.args.get("group") is None and not all(
        map(_shows_what_a_row_is_in_duckdb_trial, kept)
    ):
        return None
    return (
        before.select(*kept[0], append=False),
        after.select(*kept[1], append=False),
    )


# With these, all results decide which rows there are: distinct ones, and those that come first.
_ABOUT_WHOLE_ROWS = ("distinct", "limit", "offset", "fetch", "sample")


def _needs_all_results_in_duckdb_trial(select: exp.Select) -> bool:
    if any(select.args.get(name) for name in _ABOUT_WHOLE_ROWS):
        return True
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        return True  # the results decide what is grouped
    # A number may be a column's place.
    places = (group, select.args.get("order"))
    return any(clause is not None and clause.find(exp.Literal) for clause in places)


def _shows_what_a_row_is_in_duckdb_trial(results: Iterable[exp.Expr]) -> bool:
    """Whether results alone make a query without groups a total, or one row for each row.

    Spark refuses a query that mixes both, so the results that are left out were of the same kind.
    """
    parts = chain.from_iterable(
        item.walk(prune=_may_hide_a_total_in_duckdb_trial) for item in results
    )
    return any(isinstance(part, exp.Column) or _is_total_in_duckdb_trial(part) for part in parts)


def _is_total_in_duckdb_trial(part: exp.Expr) -> bool:
    return isinstance(part, exp.Anonymous) and part.name.lower() in AGGREGATE_NAMES


def _may_hide_a_total_in_duckdb_trial(part: exp.Expr) -> bool:
    if isinstance(part, exp.Anonymous):
        return part.name.lower() not in FUNCTIONS
    return isinstance(part, exp.Query | exp.Subquery | exp.Window)


def _makes_more_rows_in_duckdb_trial(item: exp.Expr) -> bool:
    names = {call.name.lower() for call in item.find_all(exp.Anonymous)}
    return item.find(*_MULTIPLYING) is not None or not names.isdisjoint(_MULTIPLYING_NAMES)


class _DuckdbJudge:
    def __init__(
        self,
        sides: tuple[WrittenDuckdbQuery, WrittenDuckdbQuery],
        sources: Mapping[str, SourceTable],
        constants: QueryConstants,
        seed: str,
        is_private: Callable[[str], bool],
    ) -> None:
        self._sides = sides
        self._depends_on_order = any(side.depends_on_order for side in sides)
        self._sources = sources
        self._read = {
            name: {
                column: kind
                for column, kind in sources[name].columns.items()
                if any(column in side.reads.get(name, ()) for side in self._sides)
            }
            for name in sources
            if any(name in side.reads for side in self._sides)
        }
        self._no_rows: DataSet = {name: [] for name in self._read}
        names = [[name for name, _ in side.columns] for side in self._sides]
        self._columns = [name for name in names[0] if name in names[1]]
        if not self._columns:
            raise UntriedError("two queries without a column in common")
        self._places = [[side.index(name) for name in self._columns] for side in names]
        self._rows = DuckdbRowGenerator(self._read, constants, seed, is_private)

    def try_data_sets(self, session: ClosedDuckdbSession, data_sets: int) -> DuckdbTrialVerdict:
        session.create_tables(self._sources[name] for name in self._read)
        for side in self._sides:
            session.check_query(side.text)
        live: list[DataSet] = []
        differing = 0
        chance: list[DataSet] = []
        with suppress(DuckdbOutOfTimeError):
            for number in range(data_sets + 1):
                is_last = number == data_sets
                data = self._no_rows if is_last else self._choose_data(number, live)
                results = self._try_data(session, data)
                if results is None:
                    continue
                differing += any(results) and not is_last
                if results[0] != results[1]:
                    if self._is_steady(session, data, results):
                        return self._make_differing_verdict(session, data, results, differing)
                    if number % _DISTINCT_STEP == 1:  # in others ties make both sides random
                        chance.append(data)
                if any(results):
                    live = [*live[-5:], self._find_live_part(session, data)]
            if any(
                self._depends_on_order_on_one_side(session, data) for data in chance[:_MOST_CHANCES]
            ):
                return DuckdbTrialVerdict("not_tried", reason=ORDER_OF_ONE_SIDE)
            if not differing:
                return DuckdbTrialVerdict("not_tried", reason=NO_ROWS)
            return DuckdbTrialVerdict("alike", differing)
        if differing < _FEWEST:
            return DuckdbTrialVerdict("not_tried", reason="more time than the judge has")
        return DuckdbTrialVerdict("alike", differing)

    def _choose_data(self, number: int, live: Sequence[DataSet]) -> DataSet:
        """Chooses the data of a run.

        Args:
            live: the latest data for which a side gave rows.
        """
        if number in _WIDE_DATA_SETS:
            return self._rows.make_data(wide=True)
        if number in _DATA_SETS_OF_ENDS and self._rows.has_ends:
            return self._rows.make_data_of_ends()
        if self._depends_on_order and number % _DISTINCT_STEP == 1:
            # Among equal keys the order of rows is random, so a difference is not steady.
            return self._rows.make_distinct_data()
        if not live and number > _FRUITLESS and number % 2:
            return self._rows.make_dense_data()
        if live and number % 3:
            return self._rows.change_data(live[number % len(live)])
        return self._rows.make_data()

    def _depends_on_order_on_one_side(self, session: ClosedDuckdbSession, data: DataSet) -> bool:
        """Whether the order of rows decides the result of exactly one side."""
        if not self._depends_on_order:
            return False
        seen: tuple[set[Any], set[Any]] = (set(), set())
        for mode in range(_MANY_MODES):
            results = self._try_data(session, data, mode)
            if results is None:
                return False
            for side, result in zip(seen, results, strict=True):
                side.add(frozenset(result.items()))
            if all(len(side) > 1 for side in seen):
                return False
        return len(seen[0]) != len(seen[1])

    def _make_differing_verdict(
        self, session: ClosedDuckdbSession, data: DataSet, results: Results, differing: int
    ) -> DuckdbTrialVerdict:
        # If the time ends, the smallest rows so far are the example.
        with suppress(DuckdbOutOfTimeError):
            for smaller in self._iterate_smaller_differing(session, data):
                data, results = smaller
        return DuckdbTrialVerdict(
            "differs", differing, example=self._describe_example(data, results)
        )

    def _try_data(
        self, session: ClosedDuckdbSession, data: DataSet, mode: int = 0
    ) -> Results | None:
        """Runs both sides; None if one fails."""
        try:
            for name, rows in data.items():
                session.fill_table(self._sources[name], list(self._read[name]), rows)
            one, other = (
                Counter(
                    tuple(_round_value_of_cell(row[place]) for place in places)
                    for row in session.run_query(side.text.replace(MODE, str(mode)))
                )
                for side, places in zip(self._sides, self._places, strict=True)
            )
        except UnusableDuckdbDataError:
            return None
        return one, other

    def _is_steady(self, session: ClosedDuckdbSession, data: DataSet, results: Results) -> bool:
        """Whether both results are the same for any order in which rows are read."""
        turned = {name: rows[::-1] for name, rows in data.items()}
        if self._try_data(session, turned) != results:
            return False
        if not self._depends_on_order:
            return True
        return all(self._try_data(session, data, mode) == results for mode in _MODES)

    def _try_differing(self, session: ClosedDuckdbSession, data: DataSet) -> Results | None:
        """Returns both results if the queries differ on these data; otherwise None."""
        results = self._try_data(session, data)
        if results is None or results[0] == results[1]:
            return None
        return results if self._is_steady(session, data, results) else None

    def _iterate_smaller_differing(
        self, session: ClosedDuckdbSession, data: DataSet
    ) -> Iterator[tuple[DataSet, Results]]:
        """Yields smaller data that still differ: rows are removed, then values made plain."""
        runs = _SMALLER_RUNS
        changed = True
        while changed and runs > 0:
            changed = False
            for smaller in self._iterate_smaller(data):
                runs -= 1
                if runs <= 0:
                    break
                results = self._try_differing(session, smaller)
                if results is not None:
                    data, changed = smaller, True
                    yield data, results
                    break

    def _find_live_part(self, session: ClosedDuckdbSession, data: DataSet) -> DataSet:
        """Finds a few rows of a wide data set for which a side gives rows; keeps small data."""
        for half in _iterate_duckdb_halves(data):
            results = self._try_data(session, half)
            if results is not None and any(results):
                return self._find_live_part(session, half)
        return data

    def _iterate_smaller(self, data: DataSet) -> Iterator[DataSet]:
        yield from _iterate_duckdb_halves(data)
        for name, rows in data.items():
            for place in range(len(rows)):
                yield {**data, name: rows[:place] + rows[place + 1 :]}
        for name, rows in data.items():
            kinds = list(self._read[name].values())
            for place, row in enumerate(rows):
                for cell, kind in enumerate(kinds):
                    plain = list_plain_values(kind)
                    for value in plain[: _count_plainer_values(row[cell], plain)]:
                        changed = (*row[:cell], value, *row[cell + 1 :])
                        yield {**data, name: [*rows[:place], changed, *rows[place + 1 :]]}

    def _describe_example(self, data: DataSet, results: Results) -> FoundDuckdbExample:
        pairs = match_duckdb_rows(*(sorted(side.elements(), key=repr) for side in results))
        differing = {
            name
            for place, name in enumerate(self._columns)
            for one, other in pairs
            if one is not None and other is not None and one[place] != other[place]
        }
        return FoundDuckdbExample(
            tables=tuple(
                DuckdbExampleTable(name, tuple(self._read[name].items()), tuple(rows))
                for name, rows in data.items()
            ),
            columns=tuple(self._columns),
            rows=pairs,
            differing=tuple(name for name in self._columns if name in differing),
        )


def _count_plainer_values(value: Any, plain: Sequence[Any]) -> int:
    """Counts the values that are plainer than `value`, at most 2: only those are worth a try."""
    return min(plain.index(value) if value in plain else len(plain), 2)


def _round_value_of_cell(value: Any) -> Any:
    """Makes the form of a value that is compared.

    The last digits of sums of doubles depend on their order, so they are cut.
    """
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.11g}") + 0.0
    if isinstance(value, list):
        return tuple(map(_round_value_of_cell, value))
    if isinstance(value, dict):
        return DuckdbFields((name, _round_value_of_cell(one)) for name, one in value.items())
    return value


def _iterate_duckdb_halves(data: DataSet) -> Iterator[DataSet]:
    """Yields `data` with half of the rows of one table that has many."""
    for name, rows in data.items():
        half = len(rows) // 2
        if len(rows) > MOST_ROWS:
            yield {**data, name: rows[:half]}
            yield {**data, name: rows[half:]}


def match_duckdb_rows(
    before: Sequence[Row], after: Sequence[Row]
) -> tuple[tuple[Row | None, Row | None], ...]:
    """Puts both results side by side: each row beside the most similar row of the other side.

    A row without a similar one is beside None.
    """
    waiting = list(after)
    pairs: list[tuple[Row | None, Row | None]] = []
    for row in sorted(before, key=lambda one: one not in waiting):  # equal rows are paired
        alike = [sum(one == two for one, two in zip(row, other, strict=True)) for other in waiting]
        best = max(alike, default=0)
        pairs.append((row, waiting.pop(alike.index(best)) if best else None))
    return (*pairs, *((None, row) for row in waiting))
