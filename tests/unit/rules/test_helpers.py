"""The readers that rules stand on: types, places, Python code, audits, intervals."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from ci_bot.protocol.messages import Workplace
from ci_bot.worker.rules import RuleInputs, find_file_findings, find_project_findings
from ci_bot.worker.rules import inputs as reading
from ci_bot.worker.rules.models.intervals import TimeFilterMissing
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.rules.models.storage import HugeFullModel
from ci_bot.worker.rules.observation import find_anchor_line
from ci_bot.worker.rules.source_columns import is_personal
from ci_bot.worker.sql.column_changes import compare_types, list_column_changes
from ci_bot.worker.sql.interval_filters import find_interval_bounds
from ci_bot.worker.sql.model_code import (
    find_clock_calls_in,
    find_random_calls_in,
    find_side_effects,
    is_pure_macro,
)
from ci_bot.worker.sql.model_query import ModelQueries
from tests.unit.rules.shop import FILES, edited
from tests.unit.rules.world import change, files, models, rules

# -------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("old", "new", "how"),
    [
        ("INT", "INT", None),
        ("INT", "BIGINT", "wider"),
        ("BIGINT", "INT", "narrower"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", "wider"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 4)", "wider"),
        ("DECIMAL(10, 2)", "DECIMAL(10, 4)", "narrower"),
        ("DECIMAL(10, 2)", "DECIMAL(8, 0)", "narrower"),
        ("INT", "DECIMAL(10, 0)", "wider"),
        ("BIGINT", "DECIMAL(10, 0)", "narrower"),
        ("DECIMAL(10, 2)", "INT", "narrower"),
        ("FLOAT", "DOUBLE", "wider"),
        ("DOUBLE", "FLOAT", "narrower"),
        ("DOUBLE", "BIGINT", "other"),
        ("TIMESTAMP", "DATE", "narrower"),
        ("DATE", "TIMESTAMP", "wider"),
        ("STRING", "INT", "other"),
        ("STRING", "VARCHAR(10)", None),
        ("VARCHAR(80)", "VARCHAR(10)", None),
        ("ARRAY<INT>", "ARRAY<STRING>", "other"),
        ("UNKNOWN", "INT", None),
    ],
)
def test_retyped(old: str, new: str, how: str | None) -> None:
    kinds = [exp.DataType.build(kind, dialect="spark") for kind in (old, new)]

    assert compare_types(*kinds) == how


numbers = st.integers(1, 38).flatmap(
    lambda p: st.integers(0, p).map(lambda s: exp.DataType.build(f"DECIMAL({p}, {s})"))
)


@given(numbers, numbers)
def test_retyped__a_way_back_from_wider_is_never_wider(a: exp.DataType, b: exp.DataType) -> None:
    there, back = compare_types(a, b), compare_types(b, a)

    assert not (there == "wider" and back == "wider")
    assert (there is None) == (back is None)


# ------------------------------------------------------------------------------------ columns


def test_column_changes__names_who_still_reads_them() -> None:
    inputs = edited(("orders", "AS amount", "AS total"))
    name = '"spark_catalog"."stg"."orders"'
    readers = [inputs.after[reader] for reader in sorted(inputs.readers[name])]

    found = list_column_changes(inputs.before[name], inputs.after[name], readers)

    assert [(c.name, c.before, c.after) for c in found] == [
        ("amount", "DECIMAL(10, 2)", None),
        ("total", None, "DECIMAL(10, 2)"),
    ]
    assert found[0].readers == [
        '"spark_catalog"."mart"."open_orders"',
        '"spark_catalog"."mart"."revenue"',
    ]


def test_column_changes__of_a_new_model_are_additions() -> None:
    (model,) = models(
        {"models/m.sql": "MODEL (name a.b, kind FULL); SELECT 1 AS x"}, external={}
    ).values()

    assert [(c.name, c.before) for c in list_column_changes(None, model)] == [("x", None)]


def test_column_changes__unknown_columns_give_none() -> None:
    star = {"models/m.sql": "MODEL (name a.b, kind FULL); SELECT * FROM x.y"}
    known = {"models/m.sql": "MODEL (name a.b, kind FULL); SELECT 1 AS x"}
    (before,) = models(star, external={}).values()
    (after,) = models(known, external={}).values()

    assert list_column_changes(before, after) == []


# -------------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("anchors", "line"),
    [(("LIMIT",), 6), (("limitless",), 4), (("nothing", "kind"), 3), (("nothing",), 2), ((), 2)],
)
def test_line_of(anchors: tuple[str, ...], line: int) -> None:
    text = "MODEL (\n  name a.b,\n  kind FULL\n); -- limitless\n-- LIMIT\nSELECT 1 LIMIT 1\n"

    assert find_anchor_line(text, anchors, "a.b") == line


@given(st.text(max_size=200), st.lists(st.text(max_size=10), max_size=3))
def test_line_of__is_a_line_of_the_text(text: str, anchors: list[str]) -> None:
    found = find_anchor_line(text, anchors, "a.b")

    assert found is None or 1 <= found <= len(text.splitlines())


# -------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize(
    ("source", "clock", "chance"),
    [
        ("from datetime import datetime\nx = datetime.now()", True, False),
        ("import datetime as d\nx = d.datetime.utcnow()", True, False),
        ("from datetime import date as day\nx = day.today()", True, False),
        ("import time\nx = time.time()", True, False),
        ("import pandas as pd\nx = pd.Timestamp.now()", True, False),
        ("import pandas as pd\nx = pd.to_datetime('now')", True, False),
        ("import pandas as pd\nx = pd.to_datetime(df['day'])", False, False),
        ("from datetime import datetime\nx = datetime.strptime('2024', '%Y')", False, False),
        ("x = execution_time.now", False, False),
        ("# datetime.now()\nx = 'datetime.now()'", False, False),
        ("import random\nx = random.random()", False, True),
        ("import random\nrandom.seed(1)\nx = random.random()", False, False),
        ("import random\nrandom.seed()\nx = random.random()", False, True),
        ("import numpy as np\nx = np.random.rand(3)", False, True),
        ("import numpy as np\nx = np.random.default_rng(7).random()", False, False),
        ("import numpy as np\nx = np.random.default_rng().random()", False, True),
        ("import uuid\nx = uuid.uuid4()", False, True),
        ("import uuid\nx = uuid.uuid5(uuid.NAMESPACE_URL, 'x')", False, False),
        ("x = df.sample(10)", False, True),
        ("x = df.sample(10, random_state=1)", False, False),
        ("from pyspark.sql import functions as F\nx = F.rand()", False, True),
        ("from pyspark.sql import functions as F\nx = F.rand(seed=1)", False, False),
        ("from pyspark.sql import functions as F\nx = F.current_timestamp()", True, False),
    ],
)
def test_python_calls(source: str, clock: bool, chance: bool) -> None:
    trees = [ast.parse(textwrap.dedent(source))]

    assert (bool(find_clock_calls_in(trees)), bool(find_random_calls_in(trees))) == (clock, chance)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(e, column, rate=0.19):\n    return f'{column} / (1 + {rate})'", True),
        ("def f(e, *columns):\n    return [f'LOWER({c})' for c in columns]", True),
        ("def f(e, column):\n    'Doc.'\n    name = column.name\n    return name.upper()", True),
        ("def f(e, column):\n    return column if e.runtime_stage == 'loading' else 0", False),
        ("def f(e, column):\n    return column + RATE", False),
        ("def f(e, column):\n    import os\n    return os.environ['x']", False),
        ("def f(e, column):\n    return open(column).read()", False),
        ("def f(e, column):\n    return column.__class__", False),
        ("def f(e, column, now=today()):\n    return now", False),
        ("def f(e, column):\n    return (lambda: e)().runtime_stage", False),
        ("x = 1", False),
        ("def f(e):\n    return 1\nf = g", False),
        ("def f(", False),
        (None, False),
    ],
)
def test_python_macro__is_pure(source: str | None, expected: bool) -> None:
    assert is_pure_macro(source) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import requests\nrequests.post('https://x.example')", ["requests.post"]),
        ("import subprocess as sp\nsp.run(['x'])", ["subprocess.run"]),
        ("import os\nos.remove('x')", ["os.remove"]),
        ("import os\nos.path.exists('x')", []),
        ("open('x', 'w')", ["open(…, 'w')"]),
        ("open('x', mode='a')", ["open(…, 'w')"]),
        ("open('x')", []),
        ("context.engine_adapter.execute('x')", ["context.engine_adapter.execute"]),
        ("context.engine_adapter.fetchdf('x')", []),
    ],
)
def test_python_side_effects(source: str, expected: list[str]) -> None:
    assert find_side_effects(ast.parse(source)) == expected


@pytest.mark.parametrize(
    ("source", "clock"),
    [
        ("context.fetchdf('SELECT CURRENT_TIMESTAMP')", True),
        ("context.fetchdf(\"SELECT 'current_date' AS x\")", False),
        ("import pandas as pd\nx = pd.Timestamp('now')", True),
        ("import numpy as np\nx = np.datetime64('today')", True),
        ("import pandas as pd\nx = pd.Timestamp('2024-01-01')", False),
    ],
)
def test_python_clocks__in_texts(source: str, clock: bool) -> None:
    assert bool(find_clock_calls_in([ast.parse(source)])) is clock


# ------------------------------------------------------------------------------------ personal


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("email", True), ("customer_email", True), ("e_mail", True), ("phone_number", True),
        ("first_name", True), ("full_name", True), ("date_of_birth", True), ("iban", True),
        ("billing_address", True), ("ip_address", True), ("ssn", True),
        ("email_hash", False), ("email_count", False), ("has_email_flag", False),
        ("airport_name", False), ("product_name", False), ("name", False), ("amount", False),
        ("addressable_market", False), ("company", False), ("marketing_opt_in", False),
        ("panel", False), ("phoneme", False),
    ],
)  # fmt: skip
def test_is_personal(name: str, expected: bool) -> None:
    assert is_personal(name) is expected


# ------------------------------------------------------------------------------------ intervals

TEMPLATE = "MODEL (name a.b, kind INCREMENTAL_BY_TIME_RANGE (time_column d, batch_size 1)); {query}"


@pytest.mark.parametrize(
    ("query", "lower", "upper"),
    [
        ("SELECT t.d FROM x.t AS t WHERE t.d BETWEEN @start_ds AND @end_ds", True, True),
        ("SELECT t.d FROM x.t AS t WHERE t.d >= @start_ds", True, False),
        ("SELECT t.d FROM x.t AS t WHERE @end_ds >= t.d", False, True),
        ("SELECT t.d FROM x.t AS t WHERE NOT t.d BETWEEN @start_ds AND @end_ds", False, False),
        ("SELECT t.d FROM x.t AS t WHERE t.d BETWEEN @start_ds AND @end_ds OR t.e", False, False),
        (
            "SELECT t.d FROM x.t AS t WHERE (t.d BETWEEN @start_ds AND @end_ds AND t.e)"
            " OR (t.d BETWEEN @start_ds AND @end_ds AND t.f)",
            True,
            True,
        ),
        ("SELECT t.d FROM x.t AS t WHERE t.d = @start_ds", True, True),
        (
            "SELECT t.d FROM (SELECT d FROM x.t WHERE d BETWEEN @start_ds AND @end_ds) AS t",
            True,
            True,
        ),
        (
            "SELECT s.d FROM x.s AS s LEFT JOIN (SELECT d FROM x.t WHERE d BETWEEN @start_ds AND"
            " @end_ds) AS t ON s.d = t.d",
            False,
            False,
        ),
        (
            "SELECT s.d FROM x.s AS s JOIN (SELECT d FROM x.t WHERE d BETWEEN @start_ds AND"
            " @end_ds) AS t ON s.d = t.d",
            True,
            True,
        ),
        (
            "SELECT s.d FROM x.s AS s JOIN x.t AS t ON s.k = t.k AND t.d BETWEEN @start_ds AND @end_ds",
            True,
            True,
        ),
        (
            "SELECT t.d FROM x.t AS t WHERE t.k IN (SELECT k FROM x.c WHERE d BETWEEN @start_ds AND @end_ds)",
            True,
            True,
        ),
        (
            "SELECT d FROM x.t WHERE d BETWEEN @start_ds AND @end_ds UNION ALL SELECT d FROM x.s",
            False,
            False,
        ),
        (
            "SELECT d FROM x.t WHERE d BETWEEN @start_ds AND @end_ds EXCEPT SELECT d FROM x.s",
            True,
            True,
        ),
        (
            "SELECT t.d FROM (SELECT d FROM x.s WHERE d BETWEEN @start_ds AND @end_ds) AS s"
            " RIGHT JOIN x.t AS t ON s.d = t.d",
            False,
            False,
        ),
        (
            "SELECT c.d FROM (SELECT EXPLODE(SEQUENCE(@start_dt, @end_dt)) AS d) AS c"
            " LEFT JOIN x.t AS t ON t.d = c.d",
            True,
            True,
        ),
        (
            "WITH RECURSIVE r AS (SELECT d FROM x.t WHERE d BETWEEN @start_ds AND @end_ds"
            " UNION ALL SELECT d FROM r) SELECT d FROM r",
            True,
            True,
        ),
        (
            "SELECT t.d FROM x.t AS t QUALIFY t.d BETWEEN @start_ds AND @end_ds",
            True,
            True,
        ),
        ("SELECT @start_date AS d", True, True),
    ],
)
def test_bounds(query: str, lower: bool, upper: bool) -> None:
    (model,) = models({"models/m.sql": TEMPLATE.format(query=query)}, external={}).values()
    made = ModelQueries().query_of(model)
    assert made is not None

    bounds = find_interval_bounds(made)

    assert (bounds.lower, bounds.upper) == (lower, upper)


# ------------------------------------------------------------------------- rules with more needs


@pytest.mark.parametrize(("rows", "expected"), [(1_000_001, 1), (1_000_000, 0), (None, 0)])
def test_huge_full_model__needs_recorded_rows(rows: int | None, expected: int) -> None:
    made = models(FILES)
    model = made['"spark_catalog"."mart"."revenue"']
    view = ProjectView(made, row_counts={model.fqn: rows} if rows else {})

    assert len(list(HugeFullModel(view).find_observations(model))) == expected


def test_ignored_rules__new_in_a_file() -> None:
    inputs = edited(("revenue", "grain country", "ignored_rules ['noselectstar'], grain country"))

    assert rules(inputs, at_least="medium") == {"lint-rules-ignored": "medium"}


def test_rule__works_as_a_rule_of_sqlmeshs_linter(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "m.sql"
    text = FILES["models/orders.sql"].replace("BETWEEN @start_ds AND @end_ds", "IS NOT NULL")
    path.write_text(textwrap.dedent(text))
    made = models({"models/orders.sql": text})
    model = made['"spark_catalog"."stg"."orders"']
    model._path = path

    (violation,) = TimeFilterMissing(ProjectView(made)).check_model(model) or []

    assert violation.rule.name == "timefiltermissing"
    assert violation.violation_range is not None
    assert violation.violation_range.start.line == 18


# --------------------------------------------------------------------------------- crashes


def test_find__a_crashing_rule_is_visible_and_the_others_go_on() -> None:
    inputs = edited(("orders", ", lookback 2", ""))

    def broken(path: str) -> bytes | None:
        raise OSError("gone")

    found = find_project_findings(
        RuleInputs(
            **{
                **inputs.__dict__,
                "files_before": broken,
                "changed_files": ("config.yaml", "tests/test_t.yaml"),
            }
        )
    )

    assert {f.rule for f in found} >= {"rule-crashed", "lookback-removed"}
    assert {f.severity for f in found if f.rule == "rule-crashed"} == {"info"}


def test_find_in_files__rule_that_fails_on_a_file__is_told_and_hides_no_other_file() -> None:
    """A file that keeps a rule from reading it could hold a credential."""
    contents = {"config.yaml": b"a: 1\n", "notes.md": b"key: AKIA" + b"Q3WERTYUIOP2ASDF\n"}

    def read(path: str) -> bytes | None:
        if path == "config.yaml":
            raise MemoryError
        return contents[path]

    inputs = files({}, {"config.yaml": "a: 1", "notes.md": "x"})
    found = find_file_findings(RuleInputs(**{**inputs.__dict__, "files_after": read}))

    crashed = [(f.path, f.severity) for f in found if f.rule == "rule-crashed"]
    assert set(crashed) == {("config.yaml", "high")}
    assert [f.path for f in found if f.rule == "hardcoded-secret"] == ["notes.md"]


def test_reading__links_of_a_copy_to_the_original__and_no_others(tmp_path: Path) -> None:
    original, copy, elsewhere = (tmp_path / name for name in ("original", "copy", "elsewhere"))
    for directory in (original, copy, elsewhere):
        directory.mkdir()
        (directory / "file.txt").write_text(directory.name)
    (copy / "large.json").symlink_to(original / "file.txt")
    (copy / "out.txt").symlink_to(elsewhere / "file.txt")
    place = Workplace(repository=str(copy), cache_dir="/c", scratch_dir="/s")

    read = reading.make_head_reader(place.model_copy(update={"linked_to": str(original)}))

    assert (read("file.txt"), read("large.json")) == (b"copy", b"original")
    assert (read("out.txt"), read("../elsewhere/file.txt"), read("gone")) == (None, None, None)
    assert reading.make_head_reader(place)("large.json") is None
    assert reading.make_base_reader(None)("file.txt") is None


def test_find__without_a_head_that_loads_reads_files_only() -> None:
    inputs = change(FILES, {}, other_after={"config.yaml": "password: hunter22\n"}, loaded=False)

    assert rules(inputs) == {"hardcoded-secret": "blocker"}


def test_find__base_branchs_own_changes_are_not_judged() -> None:
    inputs = edited(("orders", ", lookback 2", ""))
    theirs = RuleInputs(**{**inputs.__dict__, "from_base": frozenset(inputs.after)})

    assert rules(theirs) == {}


def test_find__is_the_same_twice() -> None:
    inputs = edited(("orders", ", lookback 2", ""), ("revenue", "LEFT JOIN", "INNER JOIN"))

    assert find_project_findings(inputs) == find_project_findings(inputs)
