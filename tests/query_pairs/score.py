"""`python -m tests.query_pairs.score OUT` writes how often the product is right about the pairs.

The answers that it is held against are Spark's, see `tests/integration/test_query_pairs.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.query_pairs.judge import Verdict, judge_pair
from tests.query_pairs.pairs import QueryPair, load_pairs

CALLED = ("same", "differs", "not known")


def score_pairs(pairs: Iterable[QueryPair]) -> dict[str, Verdict]:
    """The product's claim about each pair, by its name."""
    return {pair.name: judge_pair(pair) for pair in pairs}


def list_wrong(pairs: Iterable[QueryPair], verdicts: Mapping[str, Verdict]) -> list[str]:
    """Names of pairs of which the product claims what is not so."""
    return [
        pair.name for pair in pairs if {pair.expected, verdicts[pair.name]} == {"same", "differs"}
    ]


def format_score(pairs: Iterable[QueryPair], verdicts: Mapping[str, Verdict]) -> str:
    """A table of answers and claims; what is wrong and what is not known, each by its name."""
    pairs = list(pairs)
    lines = ["| On Spark | Pairs | Called the same | Called different | Not known |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for expected in ("same", "differs"):
        names = [pair.name for pair in pairs if pair.expected == expected]
        counts = [sum(verdicts[name] == called for name in names) for called in CALLED]
        lines.append(f"| {expected} | {len(names)} | " + " | ".join(map(str, counts)) + " |")
    wrong = list_wrong(pairs, verdicts)
    open_ones = [p.name for p in pairs if p.expected == "same" and verdicts[p.name] != "same"]
    lines += ["", f"## Wrong ({len(wrong)})", ""]
    for pair in pairs:
        if pair.name in wrong:
            lines += [f"- {pair.name}: {pair.idea}", f"  - `{pair.base}`", f"  - `{pair.head}`"]
    lines += ["", f"## The same, and not called so ({len(open_ones)})", ""]
    return "\n".join([*lines, *(f"- {name}" for name in open_ones), ""])


def main() -> None:
    """Writes the table; fails where the product claims what is not so."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.query_pairs.score OUT")
    pairs = load_pairs()
    verdicts = score_pairs(pairs)
    text = format_score(pairs, verdicts)
    Path(sys.argv[1]).write_text(text)
    sys.stdout.write(text)
    sys.exit(1 if list_wrong(pairs, verdicts) else 0)


if __name__ == "__main__":
    main()
