"""What differs on Spark is neither proved to be the same nor left out of the column impact."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.worker.sql.equivalence.blocks import KeyInterner
from ci_bot.worker.sql.equivalence.proof import NormalForm, normalize_query
from ci_bot.worker.sql.lineage.propagation import list_own_changes
from ci_bot.worker.sql.lineage.sources import LineageModel, ModelDefinition
from ci_bot.worker.sql.model_query import ModelQueries
from tests.unit.rules.world import models
from tests.unit.sql.spark_pairs import OTHER, SAME, TABLES, UNDECLARED


def render(text: str) -> Any:
    files = {"models/m.sql": f"MODEL (name a.b, kind FULL); {text}"}
    query = ModelQueries().query_of(models(files, external=TABLES)['"spark_catalog"."a"."b"'])
    if query is None or query.rendered_query is None:
        raise AssertionError(f"cannot be rendered: {text}")
    return query.rendered_query


def read_forms(before: str, after: str) -> tuple[NormalForm, NormalForm]:
    keys = KeyInterner()
    old, new = (normalize_query(render(text), keys) for text in (before, after))
    if old is None or new is None:
        raise AssertionError("a query cannot be taken apart")
    return old, new


def list_changes(before: str, after: str) -> set[str | None]:
    """The columns that the impact lists as changed; None for the rows."""
    tables = (*TABLES, *UNDECLARED)
    model = LineageModel(
        "spark_catalog.a.b",
        parents=tuple(f"spark_catalog.{table}" for table in tables),
        change="direct",
        before=lambda: ModelDefinition(rendered=render(before)),
        after=lambda: ModelDefinition(rendered=render(after)),
    )
    columns = {f"spark_catalog.{table}": tuple(names) for table, names in TABLES.items()}
    return {part.column for part in list_own_changes(model, columns)}


@pytest.mark.by_day(50)
@pytest.mark.parametrize("name", OTHER)
def test_others__are_not_proved_and_listed(name: str) -> None:
    old, new = read_forms(*OTHER[name])

    assert not new.proves_same(old)
    assert list_changes(*OTHER[name])


@pytest.mark.parametrize("name", SAME)
def test_sames__are_proved(name: str) -> None:
    old, new = read_forms(*SAME[name])

    assert new.proves_same(old), (old.gaps, new.gaps)
