"""Which tables' columns the analysis asks for: to know a model's, its query is optimized."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import sqlglot

from ci_bot.worker.review.lineage_inputs import ReviewedModels, read_changed_project
from ci_bot.worker.sql.lineage.propagation import spread_changes
from ci_bot.worker.sql.lineage.sources import ChangedProject, LineageModel, ModelDefinition
from tests.unit.rules.world import models
from tests.unit.sql.lineage.real import NAMES, kinds_of, model


class Asked(Mapping[str, tuple[str, ...] | None]):
    """Columns that note for which table somebody asks."""

    def __init__(self, columns: Mapping[str, tuple[str, ...] | None]) -> None:
        self._columns = columns
        self.tables: set[str] = set()

    def __getitem__(self, table: str) -> tuple[str, ...] | None:
        self.tables.add(table)
        return self._columns[table]

    def __contains__(self, table: object) -> bool:
        return table in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def below(name: str, parent: str, query: str) -> LineageModel:
    parsed = sqlglot.parse_one(query)
    return LineageModel(
        name, parents=(parent,), change="indirect", after=partial(ModelDefinition, rendered=parsed)
    )


def test_columns__of_models_below_nothing_that_changes_are_not_asked_for() -> None:
    project = (
        LineageModel("s.a", change="direct", is_source=True, changed={"y": "computed"}),
        below("s.b", "s.a", "SELECT a.x AS x FROM s.a AS a"),
        below("s.c", "s.b", "SELECT b.x AS x FROM s.b AS b"),
        below("s.d", "s.c", "SELECT c.x AS x FROM s.c AS c"),
    )
    columns = Asked({"s.a": ("x", "y"), "s.b": ("x",), "s.c": ("x",), "s.d": ("x",)})

    found = spread_changes(ChangedProject(project, columns=columns))

    assert not found.reached["s.b"].any_bits
    assert columns.tables <= {"s.a", "s.b"}


def test_columns__of_a_real_model_are_worked_out_when_asked_for() -> None:
    files = {
        "a.sql": model("s.a", "SELECT x, y FROM raw.t"),
        "b.sql": model("s.b", "SELECT x FROM s.a"),
    }
    old = models(files, stored=True)
    new = models({**files, "a.sql": model("s.a", "SELECT x, y + 1 AS y FROM raw.t")})
    (last,) = [name for name in new if ".b" in name.replace('"', "")]
    reader = new[last]
    vars(reader).pop("_query_renderer", None)
    reader._columns_to_types = None
    kinds = kinds_of(old, new)
    before = {name: old[name] for name, kind in kinds.items() if kind == "direct"}

    project = read_changed_project(ReviewedModels(after=new, before=before, kinds=kinds), NAMES)

    assert "_query_renderer" not in vars(reader)
    assert dict(project.columns)[project.models[-1].name] == ("x",)
