"""Runs cells and prints the README's tables: `python -m tests.matrix [--only ACTIVITY] [VERSION...]`,
and with `--pyspark` the same for versions of PySpark.

What a cell that failed has to say goes to stderr.
"""

from __future__ import annotations

import argparse
import sys

from tests.matrix.cells import ACTIVITIES, PYSPARK_VERSIONS, VERSIONS, Cell, run


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
    asked.add_argument("--pyspark", action="store_true")
    asked.add_argument("--only", action="append", choices=list(ACTIVITIES), metavar="ACTIVITY")
    given = asked.parse_args()
    package, title = ("pyspark", "PySpark") if given.pyspark else ("sqlmesh", "SQLMesh")
    cells = []
    for version in given.versions or (PYSPARK_VERSIONS if given.pyspark else VERSIONS):
        done = run(version, given.only or list(ACTIVITIES), package)
        cells += done.cells
        print(f"{version}: {done.seconds:.0f} s", file=sys.stderr)
        if not done.passed:
            print(done.told, file=sys.stderr)
    print(table(cells, title))
    return int(not all(cell.passed for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
