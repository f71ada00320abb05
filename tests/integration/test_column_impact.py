"""The column impact of a real plan, from the files of a project to the answer of a review."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.protocol.review_report import Impact
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from ci_bot.worker.review.lineage_inputs import make_column_impact
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened

PYTHON = """
from sqlmesh import model

@model(
    "shop.scores",
    columns={"customer_id": "int", "score": "int"},
    depends_on=["shop.revenue"],
)
def execute(context, start, end, execution_time, **kwargs):
    import pandas as pd

    return pd.DataFrame({"customer_id": [1], "score": [1]})
"""
FILES = {
    "models/everything.sql": "MODEL (name shop.everything, kind VIEW);\n\n"
    "SELECT * FROM shop.orders\n",
    "models/days.sql": "MODEL (name shop.days, kind FULL);\n\n"
    "SELECT DISTINCT e.order_date::DATE AS order_date FROM shop.everything AS e\n",
    "models/scores.py": PYTHON,
    "models/best.sql": "MODEL (name shop.best, kind FULL);\n\n"
    "SELECT MAX(s.score)::INT AS score FROM shop.scores AS s\n",
    "models/buyers.sql": "MODEL (name shop.buyers, kind FULL);\n\n"
    "SELECT c.customer_id::INT AS customer_id FROM shop.customers AS c\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    found = write_duck_shop(tmp_path)
    for path, text in FILES.items():
        found.write(path, text)
    run_prod(found, "2024-01-11")
    return found


def impact(shop: Shop, scratch: Path) -> Impact:
    with opened(scratch, shop.project) as found:
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags())
        )
        assert planned is not None
        context = found.context
        return make_column_impact(
            planned, MessageNames(context.default_catalog, context.default_dialect)
        )


def answers(found: Impact) -> dict[str, str]:
    return {entry.model: entry.reached for entry in found.indirect}


def test_impact__of_a_plan__down_to_the_leaves(shop: Shop, tmp_path: Path) -> None:
    shop.edit("models/orders.sql", "customer_id * 10", "customer_id * 20")

    found = impact(shop, tmp_path)

    (part,) = [part for part in found.changed if part.how != "unknown"]
    assert (part.model, part.column, part.how) == ("shop.orders", "amount", "computed")
    assert {r.model: (r.columns, r.rows) for r in part.reached} == {
        "shop.everything": (["amount"], False),
        "shop.revenue": (["revenue"], False),
        "shop.top_customers": (["revenue"], True),
    }
    assert answers(found) == {
        "shop.everything": "yes",
        "shop.revenue": "yes",
        "shop.top_customers": "yes",
        "shop.days": "no",
        "shop.scores": "unknown",
        "shop.best": "unknown",
    }
    unknown = next(part for part in found.changed if part.how == "unknown")
    assert unknown.model == "shop.scores"
    assert [entry.model for entry in unknown.reached] == ["shop.best"]


def test_impact__of_a_seed__is_of_the_columns_whose_values_differ(
    shop: Shop, tmp_path: Path
) -> None:
    shop.edit("seeds/customers.csv", "Grace,trade", "Grace,retail")

    found = impact(shop, tmp_path)

    assert [(part.model, part.column) for part in found.changed if part.how != "unknown"] == [
        ("shop.customers", "segment")
    ]
    assert answers(found)["shop.buyers"] == "no"
    assert answers(found)["shop.orders"] == "no"


def test_impact__of_a_new_row_of_a_seed__is_its_rows(shop: Shop, tmp_path: Path) -> None:
    shop.edit("seeds/customers.csv", "3,Alan,retail\n", "3,Alan,retail\n4,Joan,trade\n")

    found = impact(shop, tmp_path)

    assert ("shop.customers", None, "rows") in {(p.model, p.column, p.how) for p in found.changed}
    assert answers(found)["shop.buyers"] == "yes"


def test_impact__of_a_dropped_column__goes_through_a_star(shop: Shop, tmp_path: Path) -> None:
    shop.edit("models/orders.sql", "  CAST(c.customer_id AS INT) AS order_id,\n", "")
    shop.edit("models/orders.sql", "  grain order_id,\n", "")
    shop.edit("models/orders.sql", "  audits (not_null(columns := (order_id)))\n", "  owner data\n")

    found = impact(shop, tmp_path)

    (part,) = [part for part in found.changed if part.how != "unknown"]
    assert (part.model, part.column, part.how) == ("shop.orders", "order_id", "dropped")
    assert {r.model: (r.columns, r.rows) for r in part.reached} == {
        "shop.everything": (["order_id"], False)
    }
    assert answers(found)["shop.revenue"] == "no"


MACRO = """
from sqlmesh import macro

@macro()
def only_late(evaluator):
    start = evaluator.locals.get("start_ds", "1970-01-01")
    return "segment = 'trade'" if start > "2020-01-01" else "TRUE"
"""


@pytest.mark.night
def test_impact__on_a_macro_that_asks_for_the_time__takes_every_name_in_its_code(
    shop: Shop, tmp_path: Path
) -> None:
    """While a project is loaded there is no such time, and the macro writes no filter."""
    shop.write("macros/late.py", MACRO)
    shop.write(
        "models/late.sql",
        "MODEL (name shop.late, kind FULL);\n\n"
        "SELECT c.customer_id::INT AS customer_id FROM shop.customers AS c WHERE @only_late()\n",
    )
    run_prod(shop, "2024-01-11")
    shop.edit("seeds/customers.csv", "Grace,trade", "Grace,retail")

    found = impact(shop, tmp_path)

    (part,) = [part for part in found.changed if part.column == "segment"]
    assert ("shop.late", True) in {(r.model, r.rows) for r in part.reached}
    assert answers(found)["shop.buyers"] == "no"


def test_impact__without_a_plan_is_empty() -> None:
    assert make_column_impact(None, MessageNames(None, None)) == Impact()
