"""Functions that mean the same in Spark and in DuckDB, and replacements for others.

One row for each function; `tests/integration/test_judge_on_spark.py` runs every row in both engines
on edge values. A function that has no row is not tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ci_bot.worker.duckdb_trials.query_scopes import MODE
from ci_bot.worker.duckdb_trials.value_types import (
    ValueType,
    make_duckdb_array_type,
    parse_duckdb_type,
)

FUNCTION_MACROS = (
    # If a month lacks a day, both engines take its last day.
    "ci_months(d, n) AS CAST(CAST(d AS DATE) + to_months(CAST(n AS INTEGER)) AS DATE)",
    "ci_seconds(t) AS floor(epoch(CAST(t AS TIMESTAMP) - CAST(CAST(t AS DATE) AS TIMESTAMP)))",
    "ci_is_last(t) AS day(t) = day(last_day(CAST(t AS DATE)))",
    """ci_months_between(a, b) AS round((year(a) - year(b)) * 12.0::DOUBLE + (month(a) - month(b))
        + CASE WHEN day(a) = day(b) OR (ci_is_last(a) AND ci_is_last(b)) THEN 0.0::DOUBLE
        ELSE ((day(a) - day(b)) * 86400.0::DOUBLE + (ci_seconds(a) - ci_seconds(b)))
            / 2678400.0::DOUBLE END, 8)""",
    # Whole months as java.time counts them: if the time of day is not reached, it moves the end by
    # a day, and then compares the days of the month.
    """ci_end_day(a, b) AS CAST(b AS DATE) + CASE
        WHEN CAST(b AS DATE) > CAST(a AS DATE) AND CAST(b AS TIME) < CAST(a AS TIME) THEN -1
        WHEN CAST(b AS DATE) < CAST(a AS DATE) AND CAST(b AS TIME) > CAST(a AS TIME) THEN 1
        ELSE 0 END""",
    "ci_month_days(d) AS (year(d) * 12 + month(d)) * 32 + day(d)",
    """ci_whole_months(a, b, n) AS CAST(trunc(
        trunc((ci_month_days(ci_end_day(a, b)) - ci_month_days(a)) / 32) / n) AS BIGINT)""",
    "ci_epoch(t) AS CAST(epoch_us(t) // 1000000 AS BIGINT)",
    """ci_make_date(y, m, d) AS TRY_CAST(CASE WHEN y BETWEEN 1 AND 9999
        THEN printf('%04d-%02d-%02d', y, m, d) END AS DATE)""",
    """ci_part(s, n, c) AS CASE
        WHEN s IS NULL OR n IS NULL OR c IS NULL THEN NULL WHEN c <= 0 THEN ''
        WHEN n > 0 THEN substring(s, n, c) WHEN n = 0 THEN substring(s, 1, c)
        WHEN length(s) + n >= 0 THEN substring(s, length(s) + n + 1, c)
        ELSE substring(s, 1, greatest(0, c + length(s) + n)) END""",
    "ci_replace(s, a, b) AS CASE WHEN a = '' AND b IS NOT NULL THEN s ELSE replace(s, a, b) END",
    "ci_repeat(s, n) AS CASE WHEN n > 0 THEN repeat(s, n) WHEN n <= 0 THEN repeat(s, 0) END",
    # The result of these in Spark depends on its release, so data with such rows prove nothing.
    """ci_lpad(s, n, p) AS CASE WHEN p <> '' AND n >= 0 THEN lpad(s, n, p)
        WHEN p = '' OR n < 0 THEN error('padded with nothing') END""",
    """ci_rpad(s, n, p) AS CASE WHEN p <> '' AND n >= 0 THEN rpad(s, n, p)
        WHEN p = '' OR n < 0 THEN error('padded with nothing') END""",
    """ci_split_part(s, p, n) AS CASE WHEN n <> 0 THEN split_part(s, p, n)
        WHEN n = 0 THEN error('part 0') END""",
    """ci_contains(a, e) AS CASE WHEN a IS NULL OR e IS NULL THEN NULL
        WHEN list_contains(a, e) THEN TRUE
        WHEN len(a) > len(list_filter(a, lambda one: one IS NOT NULL)) THEN NULL ELSE FALSE END""",
    "ci_join(a, s) AS CASE WHEN a IS NOT NULL THEN coalesce(array_to_string(a, s), '') END",
    "ci_extract(s, p, n) AS CASE WHEN s IS NOT NULL THEN regexp_extract(s, p, n) END",
    # The order differs in each mode.
    """ci_shuffle(a, mode) AS list_transform(list_sort(
        list_transform(a, lambda one: {'h': hash(mode, one), 'v': one})), lambda one: one.v)""",
    """ci_right(s, n) AS CASE WHEN s IS NOT NULL AND n <= 0 THEN ''
        ELSE ci_part(s, -n, 1000000) END""",
    """ci_initcap(s) AS array_to_string(list_transform(string_split(lower(s), ' '),
        lambda word: upper(word[1:1]) || word[2:]), ' ')""",
    # The result of a condition on all items of an array; NULL means unknown.
    """ci_any(a) AS CASE WHEN list_contains(a, TRUE) THEN TRUE
        WHEN len(list_filter(a, lambda one: one IS NULL)) > 0 THEN NULL
        WHEN a IS NOT NULL THEN FALSE END""",
    """ci_every(a) AS CASE WHEN list_contains(a, FALSE) THEN FALSE
        WHEN len(list_filter(a, lambda one: one IS NULL)) > 0 THEN NULL
        WHEN a IS NOT NULL THEN TRUE END""",
    """ci_distinct(a) AS list_filter(a, lambda one, place:
        len(list_filter(a[1:place - 1], lambda other: other IS NOT DISTINCT FROM one)) = 0)""",
    "ci_from_utc(t, z) AS timezone(z, timezone('UTC', t))",
    # An hour that a change of clocks skips or repeats proves nothing.
    """ci_to_utc(t, z) AS CASE
        WHEN timezone(z, timezone(z, t)) <> t THEN error('an hour that is skipped')
        WHEN timezone(z, timezone(z, t) - INTERVAL 1 HOUR) = t THEN error('an hour that repeats')
        WHEN timezone(z, timezone(z, t) + INTERVAL 1 HOUR) = t THEN error('an hour that repeats')
        ELSE timezone('UTC', timezone(z, t)) END""",
    "ci_json(s, p) AS CASE WHEN json_valid(s) THEN json_extract_string(s, p) END",
    # It splits between all letters, and puts an empty text after the last one.
    """ci_letters(s) AS CASE WHEN s = '' THEN ['']
        WHEN s IS NOT NULL THEN list_append(string_split(s, ''), '') END""",
    "ci_sqrt(d) AS CASE WHEN d >= 0 THEN sqrt(d) WHEN d < 0 THEN 'nan'::DOUBLE END",
)

# Names | arguments | result | DuckDB's text, with `{0}` for the first argument, `{all}` for all of
# them and `{name}` for the function's name. An argument is a type, `any`, a `number`, a `whole`
# one, an `array`, the `item` of one, a `moment` (a date or time, but no text), `T` for values that
# are converted to one type, or a constant of one of the kinds below. The argument before `...`
# repeats.
_TABLE = r"""
coalesce                  | T...                | T         | coalesce({all})
nvl ifnull                | T T                 | T         | coalesce({0}, {1})
nvl2                      | any T T             | T         | CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END
greatest least            | T T...              | T         | {name}({all})
isnull                    | any                 | boolean   | ({0} IS NULL)
isnotnull                 | any                 | boolean   | ({0} IS NOT NULL)
abs                       | number              | T         | abs({0})
sign signum               | number              | double    | CAST(sign({0}) AS DOUBLE)
isnan                     | double              | boolean   | coalesce(isnan({0}), FALSE)
sqrt                      | double              | double    | ci_sqrt({0})
power pow                 | double double       | double    | pow({0}, {1})
upper ucase               | string              | string    | upper({0})
lower lcase               | string              | string    | lower({0})
trim ltrim rtrim          | string              | string    | {name}({0}, ' ')
length char_length len    | string              | int       | CAST(length({0}) AS INTEGER)
reverse                   | array               | T         | list_reverse({0})
reverse                   | string              | string    | reverse({0})
concat                    | string...           | string    | ({joined})
concat_ws                 | string string...    | string    | concat_ws({all})
substring substr          | string int int      | string    | ci_part({0}, {1}, {2})
substring substr          | string int          | string    | ci_part({0}, {1}, 1000000)
left                      | string int          | string    | ci_part({0}, 1, {1})
right                     | string int          | string    | ci_right({0}, {1})
initcap                   | string              | string    | ci_initcap({0})
translate                 | string string string | string   | translate({0}, {1}, {2})
ascii                     | string              | int       | CAST(ascii({0}) AS INTEGER)
replace                   | string string string | string   | ci_replace({0}, {1}, {2})
instr                     | string string       | int       | CAST(instr({0}, {1}) AS INTEGER)
locate                    | string string       | int       | CAST(instr({1}, {0}) AS INTEGER)
lpad rpad                 | string int string   | string    | ci_{name}({0}, {1}, {2})
repeat                    | string int          | string    | ci_repeat({0}, {1})
startswith                | string string       | boolean   | starts_with({0}, {1})
endswith                  | string string       | boolean   | ends_with({0}, {1})
contains                  | string string       | boolean   | contains({0}, {1})
md5                       | string              | string    | md5({0})
sha1 sha                  | string              | string    | sha1({0})
sha2                      | string bits         | string    | sha256({0})
regexp_replace            | string pattern replacement | string | regexp_replace({0}, {1}, {2}, 'g')
regexp_extract            | string pattern digit | string   | ci_extract({0}, {1}, {2})
regexp_extract            | string pattern      | string    | ci_extract({0}, {1}, 1)
rlike regexp regexp_like  | string pattern      | boolean   | regexp_matches({0}, {1})
get_json_object           | string path         | string    | ci_json({0}, {1})
split_part                | string text int     | string   | ci_split_part({0}, {1}, {2})
year month day quarter    | date                | int       | CAST({name}({0}) AS INTEGER)
dayofmonth                | date                | int       | CAST(day({0}) AS INTEGER)
dayofyear weekofyear      | date                | int       | CAST({name}({0}) AS INTEGER)
dayofweek                 | date                | int       | CAST(dayofweek({0}) + 1 AS INTEGER)
weekday                   | date                | int       | CAST(isodow({0}) - 1 AS INTEGER)
hour minute second        | timestamp           | int       | CAST({name}({0}) AS INTEGER)
last_day                  | date                | date      | last_day({0})
date_add dateadd          | date int            | date      | ({0} + {1})
date_sub                  | date int            | date      | ({0} - {1})
add_months                | date int            | date      | ci_months({0}, {1})
datediff date_diff        | date date           | int       | CAST({0} - {1} AS INTEGER)
timestampdiff             | span timestamp timestamp | bigint | CAST(date_sub({0}, {1}, {2}) AS BIGINT)
datediff date_diff        | span timestamp timestamp | bigint | CAST(date_sub({0}, {1}, {2}) AS BIGINT)
timestampdiff datediff date_diff | months timestamp timestamp | bigint | ci_whole_months({1}, {2}, {0})
months_between            | timestamp timestamp | double    | ci_months_between({0}, {1})
date                      | date                | date      | {0}
to_timestamp timestamp    | timestamp           | timestamp | {0}
make_date                 | int int int         | date      | ci_make_date({0}, {1}, {2})
trunc                     | date period         | date      | CAST(date_trunc({1}, {0}) AS DATE)
date_trunc                | unit timestamp      | timestamp | CAST(date_trunc({0}, {1}) AS TIMESTAMP)
date_format               | timestamp format    | string    | strftime({0}, {1})
from_utc_timestamp        | timestamp zone      | timestamp | ci_from_utc({0}, {1})
to_utc_timestamp          | timestamp zone      | timestamp | ci_to_utc({0}, {1})
unix_timestamp            | moment              | bigint    | ci_epoch({0})
timestamp_seconds         | whole               | timestamp | make_timestamp(CAST({0} AS BIGINT) * 1000000)
timestamp_millis          | whole               | timestamp | make_timestamp(CAST({0} AS BIGINT) * 1000)
timestamp_micros          | whole               | timestamp | make_timestamp(CAST({0} AS BIGINT))
array_contains            | array item          | boolean   | ci_contains({0}, {1})
size cardinality          | array               | int       | CAST(coalesce(len({0}), -1) AS INTEGER)
size cardinality          | map                 | int       | CAST(coalesce(len({0}), -1) AS INTEGER)
array_size                | array               | int       | CAST(len({0}) AS INTEGER)
array_distinct            | array               | T         | ci_distinct({0})
array_join                | array<string> text  | string    | ci_join({0}, {1})
sort_array                | array               | T         | list_sort({0}, 'ASC', 'NULLS FIRST')
array_sort                | array               | T         | list_sort({0}, 'ASC', 'NULLS LAST')
split                     | string separator    | array<string> | string_split({0}, {1})
split                     | string filled       | array<string> | string_split_regex({0}, {1})
split                     | string bar          | array<string> | ci_letters({0})
"""  # noqa: E501 - a table


@dataclass(frozen=True)
class DuckdbFunctionRow:
    """One function with a fixed list of arguments.

    Attributes:
        takes: the kinds of its arguments.
        gives: the type of its result; None if it is that of its arguments.
        text: DuckDB's text.
        repeats: the last argument may be repeated.
    """

    name: str
    takes: tuple[str, ...]
    gives: ValueType | None
    text: str
    repeats: bool = False

    def takes_items(self, item: ValueType) -> bool:
        """Whether it takes an array of such items.

        Most functions refuse items with parts, because the engines order NULL in them differently.
        """
        return not item.parts or self.name in {"size", "cardinality", "array_size", "reverse"}

    def count_fits(self, count: int) -> bool:
        return count >= len(self.takes) if self.repeats else count == len(self.takes)


def _read_duckdb_rows(table: str) -> Mapping[str, list[DuckdbFunctionRow]]:
    found: dict[str, list[DuckdbFunctionRow]] = {}
    for line in table.strip().splitlines():
        names, takes, gives, text = (part.strip() for part in line.split("|", 3))
        kind = None if gives == "T" else parse_duckdb_type(gives)
        kinds = tuple(takes.removesuffix("...").split())
        for name in names.split():
            row = DuckdbFunctionRow(name, kinds, kind, text, takes.endswith("..."))
            found.setdefault(name, []).append(row)
    return found


FUNCTIONS = _read_duckdb_rows(_TABLE)


def _map_duckdb_units(**named: str) -> dict[str, str]:
    return {name: unit for unit, names in named.items() for name in names.split()}


# Runs of letters in a date's pattern that both engines write in the same way.
_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "DDD": "%j",
    "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A", "HH": "%H", "hh": "%I", "a": "%p",
    "mm": "%M", "ss": "%S", "SSS": "%g", "SSSSSS": "%f",
}  # fmt: skip
_FORMAT = re.compile(
    r"(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|'(?P<text>[A-Za-z ]+)'|[-/_ :.,]"
)
# Regular expressions that Java's and DuckDB's engines read in the same way: characters, sets,
# groups, counts.
_SET = r"\[\^?(?:[A-Za-z0-9 _@.+,/:;#%=*?()$|]|[A-Za-z0-9]-[A-Za-z0-9]|\\[dws.-]|-(?=\]))+\]"
PLAIN_PATTERN = (
    rf"(?:[A-Za-z0-9 _@,;:/%#=<>~-]|\\[.dws+*?()\[\]-]|[.^$()|]|{_SET}"
    r"|[*+?](?![*+?])|\{[0-9]+(?:,[0-9]*)?\})*"
)
_PERIODS = _map_duckdb_units(
    year="year yyyy yy", quarter="quarter", month="month mon mm", week="week"
)
_CLOCK = _map_duckdb_units(day="day dd", hour="hour", minute="minute", second="second")
# The allowed constants of each kind: known texts, or a pattern for them.
CONSTANTS: Mapping[str, Mapping[str, str] | str] = {
    "period": _PERIODS,
    "unit": _PERIODS | _CLOCK,
    "span": {name: name for name in ("week", "day", "hour", "minute", "second")},
    "months": {"month": "1", "quarter": "3", "year": "12"},
    "bits": {"256": "256", "0": "256"},
    "path": r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*)+",
    "digit": "[0-9]",
    "pattern": PLAIN_PATTERN,
    "replacement": r"[^$\\]*",
    "text": ".+",
    "separator": r"[A-Za-z0-9 ,;:/_@#=-]+",
    "filled": PLAIN_PATTERN,
    "bar": {"|": "|"},
    "format": ".+",
    "zone": r"[A-Z][a-z]+/[A-Z][A-Za-z_]+|UTC",
}


def read_duckdb_constant(kind: str, text: str) -> str | None:
    """Returns DuckDB's text for a constant of a kind; None if it is not a known one."""
    known = CONSTANTS[kind]
    if not isinstance(known, str):
        return known.get(text.lower())
    if not re.fullmatch(known, text):
        return None
    if kind == "filled" and (re.search(r"[\^$]", text) or re.search(text, "")):
        return None  # the engines split differently at a match without length
    return _translate_duckdb_format(text) if kind == "format" else text


def _translate_duckdb_format(text: str) -> str | None:
    """Translates a date's pattern from Spark to DuckDB; None if a part has no known equal."""
    found, end = "", 0
    for part in _FORMAT.finditer(text):
        written = _LETTERS.get(part["letters"]) if part["letters"] else part["text"] or part[0]
        if part.start() != end or written is None:
            return None
        found, end = found + written, part.end()
    return found if end == len(text) and found else None


# Aggregates: their arguments, result and DuckDB's text. If the result may depend on the order of
# rows, `{tie}` is such an order; each run that tests this uses another one.
@dataclass(frozen=True)
class DuckdbAggregateRow:
    """An aggregate: `{0}` is its argument, `{distinct}` the word, `{tie}` an order of the rows.

    Attributes:
        gives: returns its type from the type of its first argument.
    """

    takes: tuple[str, ...]
    gives: Callable[[ValueType], ValueType]
    text: str

    @property
    def depends_on_order(self) -> bool:
        return "{tie}" in self.text or MODE in self.text


def _give_always_in_duckdb(name: str) -> Callable[[ValueType], ValueType]:
    kind = ValueType(name)
    return lambda argument: kind


def _give_duckdb_argument_type(argument: ValueType) -> ValueType:
    return argument


_TIE_KNOWN = "{tie}) FILTER (WHERE {1} IS NOT NULL))[1]"
_LIST = "list({0} ORDER BY {tie}) FILTER (WHERE {0} IS NOT NULL)"
AGGREGATES: Mapping[str, DuckdbAggregateRow] = {
    "count": DuckdbAggregateRow(("any",), _give_always_in_duckdb("bigint"), "count({distinct}{0})"),
    "min": DuckdbAggregateRow(("any",), _give_duckdb_argument_type, "min({distinct}{0})"),
    "max": DuckdbAggregateRow(("any",), _give_duckdb_argument_type, "max({distinct}{0})"),
    **{
        name: DuckdbAggregateRow(
            ("number",),
            _give_always_in_duckdb("double"),
            f"{name}({{distinct}}CAST({{0}} AS DOUBLE))",
        )
        for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop", "median")
    },
    "collect_set": DuckdbAggregateRow(
        ("any",),
        make_duckdb_array_type,
        f"ci_shuffle(coalesce(list(DISTINCT {{0}}) FILTER (WHERE {{0}} IS NOT NULL), []), {MODE})",
    ),
    "count_if": DuckdbAggregateRow(
        ("boolean",), _give_always_in_duckdb("bigint"), "count(CASE WHEN {0} THEN 1 END)"
    ),
    "percentile": DuckdbAggregateRow(
        ("number", "number"),
        _give_always_in_duckdb("double"),
        "quantile_cont(CAST({0} AS DOUBLE), {1})",
    ),
    "percentile_approx": DuckdbAggregateRow(
        ("number", "number"), _give_duckdb_argument_type, "quantile_disc({0}, {1})"
    ),
    "bool_or": DuckdbAggregateRow(("boolean",), _give_always_in_duckdb("boolean"), "bool_or({0})"),
    "bool_and": DuckdbAggregateRow(
        ("boolean",), _give_always_in_duckdb("boolean"), "bool_and({0})"
    ),
    "first": DuckdbAggregateRow(("any",), _give_duckdb_argument_type, "first({0} ORDER BY {tie})"),
    "last": DuckdbAggregateRow(("any",), _give_duckdb_argument_type, "last({0} ORDER BY {tie})"),
    "collect_list": DuckdbAggregateRow(("any",), make_duckdb_array_type, f"coalesce({_LIST}, [])"),
    "max_by": DuckdbAggregateRow(
        ("any", "any"), _give_duckdb_argument_type, f"(list({{0}} ORDER BY {{1}} DESC, {_TIE_KNOWN}"
    ),
    "min_by": DuckdbAggregateRow(
        ("any", "any"), _give_duckdb_argument_type, f"(list({{0}} ORDER BY {{1}} ASC, {_TIE_KNOWN}"
    ),
}
AGGREGATE_NAMES = {
    **{name: name for name in (*AGGREGATES, "sum", "avg")},
    "any_value": "first", "first_value": "first", "last_value": "last", "mean": "avg",
    "array_agg": "collect_list", "every": "bool_and", "any": "bool_or", "some": "bool_or",
    "approx_percentile": "percentile_approx",
    "stddev": "stddev_samp", "std": "stddev_samp", "variance": "var_samp",
}  # fmt: skip
