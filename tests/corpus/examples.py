"""The examples that reviews of a corpus show, with the texts that they are about.

    python -m tests.corpus.examples CORPUS [CASE ...]

Prints what became of each changed query: an example, not told apart, or not tried, with the reason.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from sqlglot import exp, parse_one

from ci_bot.worker.execution import ExecutionVerdict
from tests.corpus.labelled import read_cases
from tests.corpus.runner import CASE_SECONDS, changed_between, request


@dataclass(frozen=True)
class JudgedQueries:
    """Two texts that a review has run, and the verdict."""

    case: str
    before: str
    after: str
    verdict: ExecutionVerdict


def judge_corpus(corpus: Path, only: Sequence[str] = ()) -> Iterator[JudgedQueries]:
    """All queries that the reviews of a corpus run, each case in a fork of its own."""
    os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
    import sqlmesh  # noqa: F401 - imported once, so that every fork has it already

    work = Path(tempfile.mkdtemp(prefix="corpus-"))
    fork = multiprocessing.get_context("fork")
    try:
        for case in read_cases(corpus):
            if only and not any(case.id.startswith(prefix) for prefix in only):
                continue
            folder = work / case.id
            case.write(folder)
            given, taken = fork.Pipe(duplex=False)
            child = fork.Process(target=_in_child, args=(case.id, folder, taken))
            child.start()
            taken.close()
            with suppress(EOFError):  # a case that does not load runs nothing
                yield from given.recv() if given.poll(CASE_SECONDS) else ()
            child.terminate()
            child.join()
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _in_child(case: str, folder: Path, found: Any) -> None:
    from ci_bot.worker import sqlmesh_compat
    from ci_bot.worker.review import review_plan
    from ci_bot.worker.rules import executions
    from ci_bot.worker.runtime import PhaseClock

    os.chdir(folder)
    for name in ("scratch", "cache"):
        (folder / name).mkdir()
    changed = changed_between(folder / "base", folder / "head")
    asked = request(folder, changed, scratch=folder / "scratch", cache=folder / "cache")
    judged: list[JudgedQueries] = []
    judge = vars(executions)["judge_queries"]

    def note(before: str, after: str, *given: Any, **more: Any) -> ExecutionVerdict:
        verdict: ExecutionVerdict = judge(before, after, *given, **more)
        judged.append(JudgedQueries(case, before, after, verdict))
        return verdict

    vars(executions)["judge_queries"] = note  # it only listens, in this process
    ports = review_plan.ReviewPorts(PhaseClock(), lambda phase, message: None, lambda: None)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        sqlmesh_compat.judge_macro_code()
        with suppress(Exception):  # what it has run by then counts
            review_plan.review_plan(asked, ports)
    found.send(judged)


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
