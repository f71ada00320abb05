"""The data diff between prod and a PR environment: one query over both tables, aggregates only.

`diff_tables` diffs one model, `diff_models` many of them side by side. Everything here except
`spark_port` is free of PySpark: the SQL is built as text and given to a port.

The counts are those of SQLMesh's `TableDiff` (sqlmesh/core/table_diff.py), except where that class
counts something that is in no table. The differences are below; each difference in counts has a
test in tests/integration/test_data_diff.py:

- `rows_prod` and `rows_pr` are the rows of the tables. SQLMesh counts rows of the join, so
  duplicate keys multiply there and rows without a key are left out. Its `s_count` is always
  `matched + only_prod` here, its `t_count` `matched + only_pr`.
- `full_match` counts matched rows only. SQLMesh also counts rows of one side whose columns are all
  NULL.
- NaN, infinity and numbers too large for DECIMAL(38, decimals) equal themselves. In SQLMesh they
  never do, because the cast that rounds them gives NULL.
- The parts of a composite key are compared one by one and exactly. SQLMesh joins them to a string,
  in which NULL is the empty string, a comma within a part shifts the others, and numbers are
  rounded to `decimals` digits.
- Maps are compared. Spark refuses `=` on them, so SQLMesh fails on such a table.
- Text and binary outside the key are compared by a 64-bit hash (`carry_value_of_diff`): two
  different values count as equal once in 2^64.
- A column whose type changed is compared after a cast if the cast is safe
  (`align_types_of_diff`), and then counts for `full_match`, too. SQLMesh leaves it out.

SQLMesh has neither `same` (the matched rows that agree without rounding, which a proof needs) nor a
profile of both sides for each column that differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.data_diff.compare import (
        FAILED,
        DiffBudget,
        DiffCandidate,
        DiffControls,
        diff_models,
    )
    from ci_bot.worker.data_diff.spark_port import (
        SparkDiffPort,
        count_parallel_diffs,
        raise_spark_failures_as_diff_errors,
    )
    from ci_bot.worker.data_diff.spec import (
        FEW_ROWS,
        DiffPort,
        DiffQueryError,
        DiffSpec,
        TimeWindow,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "compare": ["DiffBudget", "DiffCandidate", "DiffControls", "FAILED", "diff_models"],
        "spark_port": [
            "SparkDiffPort",
            "count_parallel_diffs",
            "raise_spark_failures_as_diff_errors",
        ],
        "spec": ["DiffPort", "DiffSpec", "FEW_ROWS", "DiffQueryError", "TimeWindow"],
    },
)
