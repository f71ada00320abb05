"""How often the judge finds that a changed query gives something else on Spark.

    python -m tests.corpus.differences CORPUS [CASE ...]

Each pair of queries that a review has tried is run in one session of Spark, on small tables whose
values come from types and from the constants of both queries. Prints the pairs that differ there
and that the judge did not tell apart, and a table of counts.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from sqlglot import exp, parse_one

from tests.corpus.examples import JudgedQueries, judge_corpus, plain_table, with_plain_tables
from tests.query_pairs.on_spark import SparkJudge, open_judge
from tests.query_pairs.pairs import Table, parse_table

DATA_SETS = 12
VERDICTS = ("differs", "alike", "not_tried")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "decimal", "double", "float")
_PLAIN = {
    "number": ("0", "1", "2", "3", "10", "-1", "NULL"),
    "string": ("'a'", "'b'", "'A'", "''", "NULL"),
    "boolean": ("true", "false", "NULL"),
    "date": ("DATE'2024-01-31'", "DATE'2024-02-29'", "DATE'2024-03-01'", "NULL"),
    "timestamp": ("TIMESTAMP'2024-01-31 23:59:59'", "TIMESTAMP'2024-02-01 00:00:00'", "NULL"),
}


def find_difference(judge: SparkJudge, one: JudgedQueries) -> str:
    """How the pair differs on the small tables; `not run` if it runs on none of them."""
    texts = [with_plain_tables(text) for text in (one.before, one.after)]
    tables = list(_make_tables(one))
    random = Random(one.before)
    ran = False
    for number in range(DATA_SETS):
        data = {t.name: t.random_rows(random) if number else () for t in tables}
        judge.create_tables(tables, data)
        first, second = (judge.run(text) for text in texts)
        ran = ran or not (first.error and second.error)
        how = first.differs_from(second)
        if how in ("rows", "error"):
            return how
        if how == "columns":
            return "columns"  # other names: that is known without running anything
    return "" if ran else "not run"


def _make_tables(one: JudgedQueries) -> Iterator[Table]:
    constants = _list_constants(one.before, one.after)
    for name, columns in one.tables.items():
        # What SQLMesh has no type for is a text; a query that needs another one is "not run".
        kinds = {
            column: "string" if str(kind).lower() == "unknown" else str(kind)
            for column, kind in columns.items()
        }
        written = {
            "columns": {
                column: {"type": kind, "values": _list_values(kind, constants)}
                for column, kind in kinds.items()
            },
            "rows": (),
        }
        yield parse_table(plain_table(name), written)


def _list_constants(*texts: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"string": [], "number": []}
    for text in texts:
        for literal in parse_one(text, dialect="spark").find_all(exp.Literal):
            if literal.is_string:
                found["string"].append(literal.sql(dialect="spark"))
            elif literal.this.isdigit() and int(literal.this) < 10**6:
                found["number"] += [str(int(literal.this) + step) for step in (-1, 0, 1)]
    return found


def _list_values(kind: str, constants: Mapping[str, Sequence[str]]) -> list[str]:
    name = kind.split("(", maxsplit=1)[0].lower()
    if name in _NUMBERS:
        values = (*_PLAIN["number"], *constants["number"])
    elif name == "string":
        values = (*_PLAIN["string"], *constants["string"])
    elif name in ("date", "timestamp"):
        cast = (f"TRY_CAST({text} AS {name})" for text in constants["string"])
        values = (*_PLAIN[name], *cast)
    else:
        values = _PLAIN.get(name, ("NULL",))
    return sorted(set(values))


def count_differences(judge: SparkJudge, corpus: Path, only: Sequence[str]) -> Counter[str]:
    """How many pairs came out in each way: `differs alike` differs on Spark, not for the judge."""
    counts: Counter[str] = Counter()
    for one in judge_corpus(corpus, only):
        how = find_difference(judge, one)
        on_spark = how if how in ("not run", "columns") else "differs" if how else "same"
        counts[f"{on_spark} {one.verdict.verdict}"] += 1
        if on_spark == "differs" and one.verdict.verdict != "differs":
            print(f"{one.case}: {how} on Spark, {one.verdict.verdict} {one.verdict.reason}")
    return counts


def format_counts(counts: Mapping[str, int]) -> str:
    """The table, the share of differences that are found, and the share of pairs that are tried."""
    lines = ["| On Spark | " + " | ".join(VERDICTS) + " |", "| --- | ---: | ---: | ---: |"]
    for on_spark in ("differs", "same", "columns", "not run"):
        cells = (str(counts.get(f"{on_spark} {verdict}", 0)) for verdict in VERDICTS)
        lines.append(f"| {on_spark} | {' | '.join(cells)} |")
    found, missed = counts.get("differs differs", 0), counts.get("differs alike", 0)
    untried = sum(count for name, count in counts.items() if name.endswith("not_tried"))
    total = sum(counts.values())
    lines.append(f"found of those that differ and were tried: {found} of {found + missed}")
    lines.append(f"tried: {total - untried} of {total}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Prints what was missed, and the table."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as directory, open_judge(Path(directory)) as judge:
        judge.set_ansi("false")
        counts = count_differences(judge, Path(arguments[0]).resolve(), arguments[1:])
    print(format_counts(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
