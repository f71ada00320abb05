"""The examples that reviews of a corpus show, with the texts that they are about.

    python -m tests.corpus.examples CORPUS [CASE ...]

Prints what became of each changed query: an example, not told apart, or not tried, with the reason.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one

from ci_bot.worker.duckdb_trials import DuckdbTrialVerdict, ValueType
from tests.corpus.runner import changed_between, request, run_in_forks


@dataclass(frozen=True)
class JudgedQueries:
    """Two texts that a review has run, the columns of the tables that they read, and the verdict."""

    case: str
    before: str
    after: str
    tables: Mapping[str, Mapping[str, ValueType]]
    verdict: DuckdbTrialVerdict


def judge_corpus(corpus: Path, only: Sequence[str] = ()) -> Iterator[JudgedQueries]:
    """All queries that the reviews of a corpus run; a case that does not load runs none."""
    for _, judged in run_in_forks(corpus, _judge_case, only):
        yield from judged or ()


def _judge_case(folder: Path) -> list[JudgedQueries]:
    from ci_bot.worker import sqlmesh_compat
    from ci_bot.worker.review import review_plan
    from ci_bot.worker.rules import executions
    from ci_bot.worker.runtime import WorkerPhaseClock

    for name in ("scratch", "cache"):
        (folder / name).mkdir()
    changed = changed_between(folder / "base", folder / "head")
    asked = request(folder, changed, scratch=folder / "scratch", cache=folder / "cache")
    judged: list[JudgedQueries] = []
    judge = vars(executions)["judge_queries_on_duckdb"]

    def note(
        before: str, after: str, tables: Mapping[str, Mapping[str, ValueType]], **more: Any
    ) -> DuckdbTrialVerdict:
        verdict: DuckdbTrialVerdict = judge(before, after, tables, **more)
        judged.append(JudgedQueries(folder.name, before, after, tables, verdict))
        return verdict

    vars(executions)["judge_queries_on_duckdb"] = note  # it only listens, in this process
    ports = review_plan.ReviewPorts(WorkerPhaseClock(), lambda phase, message: None, lambda: None)
    sqlmesh_compat.guard_sqlmesh_macro_evaluation()
    with suppress(Exception):  # what it has run by then counts
        review_plan.review_plan(asked, ports)
    return judged


def with_plain_tables(text: str) -> str:
    """The text with tables by one name each, as temporary views have: dots become two lines."""
    tree = parse_one(text, dialect="spark")
    for table in list(tree.find_all(exp.Table)):
        if table.db:
            name = plain_table(".".join(part.name for part in table.parts))
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.set("db", None)
            table.set("catalog", None)
            table.set("this", exp.to_identifier(name))
            table.set("alias", alias)
    return str(tree.sql(dialect="spark"))


def plain_table(name: str) -> str:
    """The name of the temporary view for a table."""
    return name.lower().replace(".", "__")


def main(arguments: Sequence[str]) -> None:
    """Prints a line for each query, and how often each verdict came."""
    counts: Counter[str] = Counter()
    for one in judge_corpus(Path(arguments[0]).resolve(), arguments[1:]):
        counts[one.verdict.verdict] += 1
        print(one.case, one.verdict.verdict, one.verdict.reason, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
