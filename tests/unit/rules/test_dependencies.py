"""Python models: what they say that they depend on, and whether they read their interval alone."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlmesh import model as python_model
from sqlmesh.utils import UniqueKeyDict

from ci_bot.protocol.rules import read_rule_page
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.rules.models.current_time import CurrentTime
from ci_bot.worker.rules.models.declarations import PythonDependencyMissing
from ci_bot.worker.rules.models.intervals import TimeFilterMissing
from ci_bot.worker.rules.models.linter_rule import ModelRule, ProjectView
from tests.unit.rules.test_pages import section
from tests.unit.rules.world import models

RULE = "python-dependency-missing"
STAGED = {
    "models/orders.sql": "MODEL (name stg.orders, kind FULL); SELECT o.order_id FROM raw.orders AS o"
}


def seen(source: str, folder: Path, kind: type[ModelRule] = PythonDependencyMissing) -> list[str]:
    """What a rule says of the Python model in `source`, beside `stg.orders`."""
    file = folder / "dwell.py"
    file.write_text(source, encoding="utf-8")
    python_model.set_registry(UniqueKeyDict("python_models"))
    # With a module behind it, SQLMesh finds the source and stores it with the model.
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module("dwell")
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("dwell", None)
    made = models(STAGED)
    (decorated,) = python_model.get_registry().values()
    loaded = decorated.model(
        module_path=folder, path=file, dialect="spark", default_catalog="spark_catalog"
    )
    view = ProjectView({**made, loaded.fqn: loaded}, names=MessageNames("spark_catalog", "spark"))
    return [observation.evidence for observation in kind(view).find_observations(loaded)]


def written(body: str, depends_on: str | None) -> str:
    depends = "" if depends_on is None else f", depends_on=[{depends_on}]"
    return (
        "from sqlmesh import model\n\n"
        f"@model('mart.dwell', columns={{'order_id': 'int'}}{depends})\n"
        f"def execute(context, **kwargs):\n    {body}\n"
    )


QUERY = "return context.fetchdf('SELECT order_id FROM stg.orders')"


@pytest.mark.parametrize(
    "body",
    [
        QUERY,
        "return context.fetchdf(f\"SELECT * FROM stg.orders WHERE d = '{kwargs}'\")",
        "return context.spark.sql('select x.order_id from raw.orders o join `stg`.`orders` x')",
        "return context.spark.table('stg.orders')",
    ],
)
def test_read__and_not_named(body: str, tmp_path: Path) -> None:
    (evidence,) = seen(written(body, ""), tmp_path)
    assert "`stg.orders`" in evidence


@pytest.mark.parametrize(
    ("body", "depends_on"),
    [
        (QUERY, "'stg.orders'"),
        ("return context.fetchdf('SELECT 1 FROM ' + context.resolve_table('stg.orders'))", None),
        ("return context.fetchdf('SELECT 1 FROM other.place')", ""),
        ("return context.fetchdf('SELECT 1 FROM mart.dwell')", ""),
    ],
    ids=["named", "found by SQLMesh", "no model", "itself"],
)
def test_read__as_it_should_be(body: str, depends_on: str | None, tmp_path: Path) -> None:
    assert seen(written(body, depends_on), tmp_path) == []


def test_page__does_what_it_says(tmp_path: Path) -> None:
    def of(title: str) -> list[Any]:
        (source,) = section(RULE, title)
        return seen(source.replace("raw.orders", "stg.orders"), tmp_path)

    assert read_rule_page(RULE)
    assert len(of("## Fires")) == 1
    assert of("## Stays quiet") == []


BY_TIME = (
    "from sqlmesh import model\nfrom sqlmesh.core.model.kind import ModelKindName\n\n"
    "@model('mart.dwell', kind=dict(name=ModelKindName.INCREMENTAL_BY_TIME_RANGE, time_column='day'), "
    "columns={'day': 'date'})\n"
    "def execute(context, start, end, execution_time, **kwargs):\n"
    "    table = context.resolve_table('stg.orders')\n    "
)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return context.fetchdf(f'SELECT day FROM {table}')", "no start and no end"),
        ("return context.fetchdf(f\"SELECT day FROM {table} WHERE day >= '{start}'\")", "no end"),
        ("return context.fetchdf(f\"SELECT day FROM {table} WHERE day = '{end}'\")", "no start"),
    ],
)
def test_interval__that_python_does_not_use(body: str, told: str, tmp_path: Path) -> None:
    (evidence,) = seen(BY_TIME + body, tmp_path, TimeFilterMissing)
    assert f"The code uses {told}, so" in evidence


@pytest.mark.parametrize(
    "body",
    [
        "return read(context, table, start, end)",
        "return context.fetchdf(f\"SELECT day FROM {table} WHERE day > '{start:%Y}'\", end)",
        "return context.spark.read.load(table).where(f\"day >= '{start}' AND day < '{execution_time}'\")",
        "return read(context, start=start, **kwargs)",
    ],
)
def test_interval__that_python_uses(body: str, tmp_path: Path) -> None:
    assert seen(BY_TIME + body, tmp_path, TimeFilterMissing) == []


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("INCREMENTAL_BY_TIME_RANGE, time_column='day'", "return [execution_time, start, end]", 1),
        ("INCREMENTAL_BY_UNIQUE_KEY, unique_key=['day']", "return [execution_time.day]", 1),
        ("INCREMENTAL_BY_TIME_RANGE, time_column='day'", "return [start, end]", 0),
        ("FULL", "return [execution_time]", 0),
        (
            "INCREMENTAL_BY_UNIQUE_KEY, unique_key=['day'], forward_only=True",
            "return [execution_time]",
            0,
        ),
    ],
)
def test_time__of_the_run_in_python(kind: str, body: str, expected: int, tmp_path: Path) -> None:
    source = BY_TIME.replace("INCREMENTAL_BY_TIME_RANGE, time_column='day'", kind) + body
    found = [text for text in seen(source, tmp_path, CurrentTime) if "execution_time" in text]
    assert len(found) == expected
