"""Runs cells and prints the tables of docs/compatibility.md: `python -m tests.matrix [--only ACTIVITY] [VERSION...]`,
with `--pyspark` for versions of PySpark, with `--postgres` for those of the state's server.

What a cell that failed has to say goes to stderr.
"""

from __future__ import annotations

import argparse
import os
import sys

from tests.matrix.cells import TABLES, Cell, run


def table(cells: list[Cell], title: str) -> str:
    """One row for each version, in the order in which they were run."""
    activities = list(dict.fromkeys(cell.activity for cell in cells))
    rows = [[title, *activities], ["---"] * (len(activities) + 1)]
    for version in dict.fromkeys(cell.version for cell in cells):
        of = {cell.activity: cell for cell in cells if cell.version == version}
        rows.append([version, *("works" if of[name].passed else "FAILS" for name in activities)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """0 where every cell works."""
    asked = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__)
    asked.add_argument("versions", nargs="*", metavar="VERSION")
    for name in ("pyspark", "postgres"):
        asked.add_argument(f"--{name}", dest="table", action="store_const", const=name)
    asked.add_argument("--only", action="append", metavar="ACTIVITY")
    asked.set_defaults(table="sqlmesh")
    given = asked.parse_args()
    rows = TABLES[given.table]
    if unknown := set(given.only or ()) - set(rows.activities):
        asked.error(
            f"no activity: {', '.join(sorted(unknown))}; there are {', '.join(rows.activities)}"
        )
    # A table has all that an activity can do, also what runs at night.
    os.environ.setdefault("CI_BOT_FUZZ", "full")
    cells = []
    for version in given.versions or rows.versions:
        done = run(version, given.only or list(rows.activities), given.table)
        cells += done.cells
        print(f"{version}: {done.seconds:.0f} s", file=sys.stderr)
        if not done.passed:
            print(done.told, file=sys.stderr)
    print(table(cells, rows.title))
    return int(not all(cell.passed for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
