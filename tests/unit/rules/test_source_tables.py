"""Types that SQLGlot does not tell, and the queries of the models above do."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.worker.duckdb_trials import write_duckdb_query
from ci_bot.worker.duckdb_trials.queries import WrittenDuckdbQuery
from ci_bot.worker.rules import find_project_findings
from ci_bot.worker.rules.source_columns import SourceTables
from ci_bot.worker.sql import ModelQueries
from tests.unit.rules.world import change, models

EXTERNAL = {"raw.fills": {"account": "string", "qty": "bigint", "price": "decimal(18,6)"}}
VALUES = "MODEL (name mart.amounts, kind FULL);\nSELECT f.account, {0} AS v FROM raw.fills AS f"
TOTALS = "MODEL (name mart.totals, kind FULL);\nSELECT t.account, {0} AS total FROM {1} AS t"
PRODUCT = "f.qty * f.price"
UNTOLD = "(SELECT MAX_BY(g.price, g.qty) FROM raw.fills AS g) * f.price"


def judge(values: str, values_after: str, *, floors: int = 0) -> tuple[str, str]:
    """The verdict on an edit of the lowest model, and its reason."""
    sides = []
    for text, total in ((values, "SUM(t.v)"), (values_after, "0 + SUM(t.v)")):
        files, above = {"models/values.sql": VALUES.format(text)}, "mart.amounts"
        for floor in range(floors):
            files[f"models/f{floor}.sql"] = (
                f"MODEL (name mart.f{floor}, kind FULL);\nSELECT t.account, t.v FROM {above} AS t"
            )
            above = f"mart.f{floor}"
        totals = TOTALS.format(total, above) + " GROUP BY t.account"
        sides.append({**files, "models/totals.sql": totals})
    inputs = change(*sides, external=EXTERNAL)
    find_project_findings(inputs)
    verdict = inputs.judged_models.found['"spark_catalog"."mart"."totals"']
    return verdict.verdict, verdict.reason


def test_type__of_a_product_of_decimals_is_told_by_the_model_above() -> None:
    assert judge(UNTOLD, UNTOLD) == ("alike", "")


def test_type__is_told_over_several_models() -> None:
    assert judge(UNTOLD, UNTOLD, floors=3) == ("alike", "")


def test_type__that_sqlglot_tells_wrong_is_told_right() -> None:
    """SQLGlot takes the product for a `decimal(18,6)`; beside it stands what nobody can tell."""
    both = f"MAP(f.qty, f.price)[1] AS w, {PRODUCT}"
    inputs = change({}, {"models/m.sql": VALUES.format(both)}, external=EXTERNAL)
    queries = ModelQueries(inputs.after)
    totals = models(
        {
            "models/m.sql": VALUES.format(both),
            "models/t.sql": TOTALS.format("MAX(t.v)", "mart.amounts") + " GROUP BY t.account",
        },
        external=EXTERNAL,
    )['"spark_catalog"."mart"."totals"']
    query = queries.query_of(totals)
    assert query is not None
    assert query.rendered_query is not None
    tables = SourceTables(inputs.before, inputs.after, queries).read_tables(
        [totals], [query.rendered_query], {}
    )
    assert {name: str(kind) for name, kind in tables["spark_catalog.mart.amounts"].items()} == {
        "account": "string",
        "w": "unknown",
        "v": "decimal(38,6)",
    }


def test_tables__that_only_an_embedded_model_reads_have_columns() -> None:
    """The reader's query contains that of the embedded model, and its schema not its tables."""
    embedded = {
        "models/e.sql": VALUES.format(PRODUCT).replace("FULL", "EMBEDDED"),
        "models/f.sql": "MODEL (name mart.named, kind EMBEDDED);\n"
        "SELECT a.account, a.v FROM mart.amounts AS a WHERE a.account <> 'x'",
    }
    sides = [
        {**embedded, "models/t.sql": TOTALS.format(total, "mart.named") + " GROUP BY t.account"}
        for total in ("SUM(t.v)", "SUM(t.v) + 1")
    ]
    inputs = change(*sides, external=EXTERNAL)
    find_project_findings(inputs)

    verdict = inputs.judged_models.found['"spark_catalog"."mart"."totals"']

    assert (verdict.verdict, verdict.reason) == ("differs", "")


def test_type__that_changes_with_the_edit_is_not_told() -> None:
    assert judge(UNTOLD, f"{UNTOLD} * f.price")[0] == "not_tried"


def test_type__that_the_judge_does_not_know_stays_unknown() -> None:
    assert judge("MAP(f.qty, f.price)[1]", "MAP(f.qty, f.price)[1]")[0] == "not_tried"


def test_type__of_a_long_chain_is_given_up() -> None:
    assert judge(UNTOLD, UNTOLD, floors=12) == ("not_tried", "a column of type unknown")


def test_types__of_a_deep_chain_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column needs all four of the model above, and none of them can be told."""
    asked = []

    def write_and_count(*given: Any) -> WrittenDuckdbQuery:
        asked.append(given)
        return write_duckdb_query(*given)

    monkeypatch.setattr("ci_bot.worker.rules.source_columns.write_duckdb_query", write_and_count)
    files, above = {}, "raw.fills"
    for floor in range(7):
        columns = ", ".join(f"MAP(t.c0, t.c1)[t.c2] + t.c3 AS c{number}" for number in range(4))
        files[f"models/f{floor}.sql"] = (
            f"MODEL (name mart.f{floor}, kind FULL);\nSELECT {columns} FROM {above} AS t"
        )
        above = f"mart.f{floor}"
    sides = [
        {
            **files,
            "models/z.sql": f"MODEL (name mart.z, kind FULL);\n"
            f"SELECT {head}t.c0 + t.c1 + t.c2 + t.c3 AS s FROM {above} AS t",
        }
        for head in ("", "0 + ")
    ]
    inputs = change(
        *sides, external={"raw.fills": dict.fromkeys(["c0", "c1", "c2", "c3"], "bigint")}
    )
    find_project_findings(inputs)
    assert [verdict.verdict for verdict in inputs.judged_models.found.values()] == ["not_tried"]
    assert 0 < len(asked) <= 2 * 7 * 5


def test_type__of_a_column_that_only_a_condition_names__is_followed_nowhere() -> None:
    """Models side by side on each floor: a key of a join would lead to all of them."""
    names = "abcdefgh"
    files = {
        f"models/{one}0.sql": VALUES.format("f.qty").replace("amounts", f"{one}0") for one in names
    }
    for floor in range(1, 5):
        for one, other in zip(names, names[1:] + names[0], strict=True):
            files[f"models/{one}{floor}.sql"] = (
                f"MODEL (name mart.{one}{floor}, kind FULL);\nSELECT x.account, x.v + 1 AS v "
                f"FROM mart.{one}{floor - 1} AS x JOIN mart.{other}{floor - 1} AS y ON x.v = y.v"
            )
    inputs = change({}, files, external=EXTERNAL)
    queries = ModelQueries(inputs.after)
    asked: list[str] = []
    query_of = queries.query_of
    queries.query_of = lambda model: asked.append(model.name) or query_of(model)  # type: ignore[method-assign]
    top = inputs.after['"spark_catalog"."mart"."a4"']
    query = query_of(top)
    assert query is not None
    assert query.rendered_apart is not None

    found = SourceTables(inputs.before, inputs.after, queries).read_tables(
        [top], [query.rendered_apart], {}
    )

    assert str(found["spark_catalog.mart.a3"]["v"]) == "bigint"
    # The joined sides of the query itself, and below each of them its own first source alone.
    followed = sorted(set(asked) - {"raw.fills"})
    assert followed == [f"mart.{one}{floor}" for one in "ab" for floor in range(4)]
