"""Writes measured comparisons into docs/numbers.md, in place of those that stand there.

python -m tests.benchmarks.write_numbers OUT.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.benchmarks.comparison import COMPARISONS, format_table
from tests.benchmarks.timed_command import ROOT

PAGE = ROOT / "docs/numbers.md"
_BEGIN, _END = "<!-- measured comparisons -->\n", "<!-- end of measured comparisons -->\n"


def replace_table(page: str, table: str) -> str:
    """The page with this table between its two marks.

    Raises:
        ValueError: the page has not both marks.
    """
    head, begin, rest = page.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page has no {(_BEGIN if not begin else _END).strip()}")
    return f"{head}{begin}\n{table}\n\n{end}{tail}"


if __name__ == "__main__":
    rows = COMPARISONS.validate_json(Path(sys.argv[1]).read_bytes())
    PAGE.write_text(replace_table(PAGE.read_text("utf-8"), format_table(rows)), "utf-8")
