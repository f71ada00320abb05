"""How good the decisions on a corpus are, as a table.

    python -m tests.corpus.score CORPUS OUT           reviews what OUT lacks, and scores all of it
    python -m tests.corpus.score CORPUS OUT --cases   and says which case missed what

The thresholds are those that the rules are held to on labelled changes that nobody wrote them with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from tests.corpus.labelled import Outcome, outcome, read_cases, share
from tests.corpus.runner import run

KEYWORDS = yaml.safe_load((Path(__file__).parent / "keywords.yaml").read_text("utf-8"))


def scored(corpus: Path, out: Path) -> list[Outcome]:
    """The outcome of every case; a case without a report in `out` is reviewed first."""
    cases = read_cases(corpus)
    lacking = [case.id for case in cases if not (out / case.id / "report.json").is_file()]
    if lacking:
        for _ in run(corpus, out, lacking):
            pass
    return [
        outcome(
            case,
            json.loads(report.read_text("utf-8")) if report.is_file() else None,
            KEYWORDS,
        )
        for case in cases
        for report in [out / case.id / "report.json"]
    ]


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What was measured, what may be, and what is."""
    danger = [one for one in outcomes if one.case.danger]
    harmless = [one for one in outcomes if not one.case.danger]
    only_go = [one for one in outcomes if set(one.case.decisions) <= {"go", "no_changes"}]
    wanted = [want for one in outcomes for want in one.case.wanted]
    missed = [want for one in outcomes for want in one.lacking]
    stopped = [one for one in harmless if one.decision == "no_go"]
    asked = [one for one in only_go if one.decision == "review"]
    rows = (
        ("dangerous changes called Go", [one for one in danger if one.let_through], danger, "0"),
        ("harmless changes called No-Go", stopped, harmless, "2 %"),
        ("Review where only Go is right", asked, only_go, "15 %"),
        (
            "decisions that are not right",
            [one for one in outcomes if not one.right],
            outcomes,
            "5 %",
        ),
        ("expected findings missed or too mild", missed, wanted, "3 %"),
        ("cases with a false alarm", [one for one in outcomes if one.alarms], outcomes, "0"),
    )
    yield f"| {len(outcomes)} cases | number | of | share | at most |"
    yield "|:--|--:|--:|--:|--:|"
    for what, part, whole, most in rows:
        yield f"| {what} | {len(part)} | {len(whole)} | {100 * share(part, whole):.1f} % | {most} |"


def misses(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """One line for each case that is not as its label says."""
    for one in outcomes:
        if not one.right or one.lacking or one.alarms:
            lacking = [
                f"{want.about} on {want.model} from {want.severity_at_least}"
                for want in one.lacking
            ]
            yield (
                f"{one.case.id}: {one.decision}"
                + ("" if one.right else f", not {' or '.join(one.case.decisions)}")
                + (f"; lacks {', '.join(lacking)}" if lacking else "")
                + (f"; false alarm {', '.join(one.alarms)}" if one.alarms else "")
            )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    found = scored(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(table(found)))
    if "--cases" in sys.argv[3:]:
        print("\n".join(misses(found)))
