"""Which statements a plan would execute, and what they do: every slot, on real plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.errors import RequestRefused
from ci_bot.protocol.plan_identity import PlanFlags
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.planning import make_plan
from ci_bot.worker.planning.make_plan import PlanRequest
from ci_bot.worker.sql_effects.judgement import JudgedEffect
from ci_bot.worker.sql_effects.plan_statements import (
    check_statement_effects_of_plan,
    judge_statement_effects_of_plan,
)
from tests.projects import Shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.projects.opened import opened

LOG = "INSERT INTO ops.log SELECT 1 AS x"
CHANGED = ("AS revenue\n", "AS revenue,\n  CAST(1 AS INT) AS one\n")
MACRO = """\
from sqlmesh import macro

@macro()
def keep_a_log(evaluator, target="{target}"):
    return f"INSERT INTO {{target}} SELECT 1 AS x"
"""
Seen = list[tuple[str, str, str, bool]]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path)


def add(shop: Shop, statement: str, model: str = "revenue") -> None:
    """Puts a statement after the query of a model."""
    text = (shop.project / f"models/{model}.sql").read_text(encoding="utf-8").rstrip()
    shop.write(f"models/{model}.sql", f"{text.rstrip(';')};\n\n{statement};\n")


def change(shop: Shop) -> None:
    """Changes the query of the model with the statements, so that its statements run again."""
    shop.edit("models/revenue.sql", *CHANGED)


def judged(shop: Shop, environment: str = "pr_1") -> list[JudgedEffect]:
    with opened(shop.root / "scratch", shop.project) as found:
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment=environment, flags=PlanFlags())
        )
        assert planned is not None
        return judge_statement_effects_of_plan(found.context, planned)


def seen(shop: Shop) -> Seen:
    """Slot, severity and target of what statements do, and whether prod does it already."""
    return [(i.statement.slot, i.severity, target(i), i.in_prod) for i in judged(shop)]


def target(item: JudgedEffect) -> str:
    """What a statement does something to, without the catalog of the warehouse."""
    return ".".join(item.effect.target or ("-",)).removeprefix("warehouse.")


def built(shop: Shop) -> Shop:
    run_prod(shop, "2024-01-11")
    return shop


# ------------------------------------------------------------------------ what stands on prod


def test_statement__that_prod_has_is_told_as_standing(shop: Shop) -> None:
    add(shop, f"@IF(@runtime_stage = 'auditing', {LOG})")
    add(shop, "ON_VIRTUAL_UPDATE_BEGIN; CREATE SCHEMA IF NOT EXISTS ops; ON_VIRTUAL_UPDATE_END")
    built(shop)
    change(shop)

    assert seen(shop) == [
        ("on-virtual-update", "blocker", "ops", True),
        ("post-statement", "blocker", "ops.log", True),
    ]


def test_statement__changed_in_one_word_is_new(shop: Shop) -> None:
    add(shop, "ON_VIRTUAL_UPDATE_BEGIN; CREATE SCHEMA IF NOT EXISTS ops; ON_VIRTUAL_UPDATE_END")
    built(shop)
    shop.edit("models/revenue.sql", "EXISTS ops", "EXISTS ops2")

    assert seen(shop) == [("on-virtual-update", "blocker", "ops2", False)]


def test_macro__that_says_something_else_now_makes_the_statement_new(shop: Shop) -> None:
    shop.write("macros/__init__.py", "")
    shop.write("macros/log.py", MACRO.format(target="ops.log"))
    shop.edit(
        "config.yaml",
        "default_gateway: duck",
        "default_gateway: duck\n\nbefore_all:\n"
        "  - CREATE SCHEMA IF NOT EXISTS ops\n"
        "  - CREATE TABLE IF NOT EXISTS ops.log (x INT)",
    )
    add(shop, "@keep_a_log()")
    built(shop)
    change(shop)
    same = [item for item in judged(shop) if item.statement.slot == "post-statement"]

    shop.write("macros/log.py", MACRO.format(target="ops.other"))
    other = [item for item in judged(shop) if item.statement.slot == "post-statement"]

    assert [(target(item), item.in_prod) for item in same] == [("ops.log", True)]
    assert [(target(item), item.in_prod) for item in other] == [("ops.other", False)]


def test_around_the_plan__what_prod_keeps_stands_and_what_comes_is_new(shop: Shop) -> None:
    config = (shop.project / "config.yaml").read_text(encoding="utf-8")
    first = "CREATE SCHEMA IF NOT EXISTS ops"
    shop.write("config.yaml", f"{config}\nbefore_all:\n  - {first}\n")
    built(shop)
    shop.write("config.yaml", f"{config}\nbefore_all:\n  - {first}\n  - DROP SCHEMA shop\n")

    assert seen(shop) == [
        ("before_all", "blocker", "ops", True),
        ("before_all", "blocker", "shop", False),
    ]


# ---------------------------------------------------------------------------------- each slot

SLOTS = {
    "post-statement": f"{LOG}",
    "stage creating": f"@IF(@runtime_stage = 'creating', {LOG})",
    "stage evaluating": f"@IF(@runtime_stage = 'evaluating', {LOG})",
    "jinja": f"JINJA_STATEMENT_BEGIN; {{% if true %}}{LOG}{{% endif %}}; JINJA_END",
    "on-virtual-update": f"ON_VIRTUAL_UPDATE_BEGIN; {LOG}; ON_VIRTUAL_UPDATE_END",
    "jinja on update": "ON_VIRTUAL_UPDATE_BEGIN; JINJA_STATEMENT_BEGIN; "
    f"{LOG}; JINJA_END; ON_VIRTUAL_UPDATE_END",
}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", sorted(SLOTS))
def test_slot__of_a_model(shop: Shop, name: str) -> None:
    add(built(shop), SLOTS[name])

    assert {(severity, target, standing) for _, severity, target, standing in seen(shop)} == {
        ("blocker", "ops.log", False)
    }


def test_slot__before_the_query(shop: Shop) -> None:
    built(shop).edit("models/revenue.sql", "\nSELECT\n", f"\n{LOG};\n\nSELECT\n")

    assert seen(shop) == [("pre-statement", "blocker", "ops.log", False)]


def test_slot__of_a_seed_and_of_all_models(shop: Shop) -> None:
    built(shop).edit(
        "config.yaml", "dialect: duckdb", f"dialect: duckdb\n  post_statements:\n    - {LOG}"
    )

    models = {item.statement.model for item in judged(shop)}

    assert models == {
        f'"warehouse"."shop"."{name}"'
        for name in ("customers", "orders", "revenue", "top_customers")
    }


def test_slot__of_a_python_model(shop: Shop) -> None:
    built(shop).write(
        "models/computed.py",
        "import pandas as pd\nfrom sqlmesh import model\n\n"
        "@model('shop.computed', kind='FULL', columns={'x': 'int'},\n"
        f"       post_statements=['{LOG}'],\n"
        "       on_virtual_update=['DROP VIEW @this_model'])\n"
        "def execute(context, start, end, execution_time, **kwargs):\n"
        "    return pd.DataFrame({'x': [1]})\n",
    )

    assert seen(shop)[:2] == [
        ("post-statement", "blocker", "ops.log", False),
        ("on-virtual-update", "high", "shop__pr_1.computed", False),
    ]


@pytest.mark.parametrize("slot", ["before_all", "after_all"])
def test_slot__around_the_plan_in_one_environment(shop: Shop, slot: str) -> None:
    built(shop).edit(
        "config.yaml",
        "default_gateway: duck",
        f"default_gateway: duck\n\n{slot}:\n"
        f"  - \"@IF(@this_env = 'prod', {LOG})\"\n"
        "  - \"@IF(@this_env = 'pr_1', DROP SCHEMA shop)\"\n",
    )

    found = {(i.environment, i.effect.kind, i.severity) for i in judged(shop)}

    assert found == {("prod", "INSERT", "blocker"), ("pr_1", "DROP SCHEMA", "blocker")}


PROGRAM = "JAVA_METHOD('java.lang.System', 'getenv', 'HOME')"
INSIDE = {
    "query": ("AS revenue\n", f"AS revenue,\n  {PROGRAM} AS home\n"),
    "stage of the query": (
        "AS revenue\n",
        f"AS revenue,\n  @IF(@runtime_stage = 'evaluating', {PROGRAM}, 'x') AS home\n",
    ),
    "composed name": ("AS revenue\n", "AS revenue,\n  @SQL('java_@{half}(1, 2)') AS home\n"),
    "argument of an audit": (
        "not_null(columns := (customer_id))",
        f"forall(criteria := ({PROGRAM} = '/'))",
    ),
    "audit of the model": (
        "not_null(columns := (customer_id))",
        "asks_java",
    ),
    "key": (
        "kind FULL",
        f"kind INCREMENTAL_BY_UNIQUE_KEY (unique_key COALESCE({PROGRAM}, customer_id))",
    ),
    "merge": (
        "kind FULL",
        "kind INCREMENTAL_BY_UNIQUE_KEY (unique_key customer_id, when_matched (WHEN MATCHED THEN "
        f"UPDATE SET target.revenue = {PROGRAM}))",
    ),
}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", sorted(INSIDE))
def test_program__is_seen_inside_what_sqlmesh_makes(shop: Shop, name: str) -> None:
    shop.edit(
        "config.yaml", "default_gateway: duck", "default_gateway: duck\nvariables: {half: method}"
    )
    built(shop).edit("models/revenue.sql", *INSIDE[name])
    shop.write(
        "audits/asks_java.sql",
        f"AUDIT (name asks_java);\nSELECT * FROM @this_model WHERE {PROGRAM} = 'x'\n",
    )

    (found,) = {(i.effect.action, i.severity, i.in_prod) for i in judged(shop)}

    assert found == ("code", "blocker", False)


def test_program__that_prod_runs_already_stands_when_the_query_changes(shop: Shop) -> None:
    # DuckDB has no such function: prod's version is planned and not built.
    shop.edit("models/revenue.sql", "kind FULL", "kind EMBEDDED")
    shop.edit("models/revenue.sql", ",\n  audits (not_null(columns := (customer_id)))", "")
    shop.edit("models/top_customers.sql", "kind VIEW", "kind EMBEDDED")
    shop.edit("models/revenue.sql", "AS revenue\n", f"AS revenue,\n  {PROGRAM} AS home\n")
    built(shop)
    shop.edit("models/revenue.sql", "SUM(o.amount)", "SUM(o.amount) + 1")

    assert {(i.effect.action, i.in_prod) for i in judged(shop)} == {("code", True)}

    other = PROGRAM.replace("getenv", "setProperty")
    shop.edit("models/revenue.sql", "AS home", f"AS home, @IF(FALSE, {other}, 1) AS never")
    assert {(i.effect.action, i.in_prod) for i in judged(shop)} == {
        ("code", True),
        ("code", False),
    }


# ------------------------------------------------------------------------------ what is its own


def test_own__tables_of_the_plan_and_views_of_the_environment(shop: Shop) -> None:
    built(shop).edit("models/orders.sql", "* 10", "* 20")
    add(shop, "DELETE FROM shop.orders WHERE FALSE")
    add(shop, "DELETE FROM @this_model WHERE FALSE")
    add(shop, "ON_VIRTUAL_UPDATE_BEGIN; GRANT SELECT ON @this_model TO r; ON_VIRTUAL_UPDATE_END")

    assert {severity for _, severity, _, _ in seen(shop)} == {"high"}


def test_own__not_the_table_of_a_model_that_prod_shares(shop: Shop) -> None:
    add(built(shop), "DELETE FROM shop.orders WHERE FALSE")

    (found,) = judged(shop)

    assert found.severity == "blocker"
    assert "of shop.orders" in found.description


def test_own__of_a_forward_only_change_is_the_preview(shop: Shop) -> None:
    shop.edit("models/orders.sql", "batch_size 5", "batch_size 5, forward_only true")
    built(shop).edit("models/orders.sql", "* 10", "* 20")
    add(shop, "DELETE FROM @this_model WHERE FALSE", "orders")

    ours = [i for i in judged(shop) if i.environment == "pr_1"]

    assert [(i.severity, target(i).endswith("__dev")) for i in ours] == [("high", True)]


def test_own__where_views_share_prods_schema_is_each_view(shop: Shop) -> None:
    built(shop).edit(
        "config.yaml", "default_gateway: duck", "default_gateway: duck\n"
        "environment_suffix_target: table",
    )  # fmt: skip
    add(shop, "ON_VIRTUAL_UPDATE_BEGIN; DROP VIEW @this_model; ON_VIRTUAL_UPDATE_END")
    add(shop, "ON_VIRTUAL_UPDATE_BEGIN; DROP TABLE shop.stray; ON_VIRTUAL_UPDATE_END")

    found = {(i.severity, (i.effect.target or ())[-1]) for i in judged(shop)}

    assert ("high", "revenue__pr_1") in found
    assert ("blocker", "stray") in found


# --------------------------------------------------------------------------- what cannot be read


def test_macro__that_asks_the_engine_cannot_be_judged(shop: Shop) -> None:
    shop.write("macros/__init__.py", "")
    shop.write(
        "macros/asks.py",
        "from sqlmesh import macro\n\n@macro()\ndef asks(evaluator):\n"
        "    if evaluator.runtime_stage == 'loading':\n        return None\n"
        "    return evaluator.engine_adapter.fetchone('SELECT 1')\n",
    )
    add(built(shop), "@asks()")

    (found,) = judged(shop)

    assert (found.severity, found.effect.action, found.in_prod) == ("blocker", "unknown", False)


def test_check__names_model_slot_kind_and_target(shop: Shop) -> None:
    add(built(shop), LOG)
    with opened(shop.root / "scratch", shop.project) as found:
        planned = make_plan.plan_against_prod(
            found.context, PlanRequest(environment="pr_1", flags=PlanFlags())
        )
        assert planned is not None

        with pytest.raises(RequestRefused) as refusal:
            check_statement_effects_of_plan(
                found.context, planned, MessageNames(found.context.default_catalog, "duckdb")
            )

    assert refusal.value.exit_code == 3
    assert refusal.value.reason_code == "writes_elsewhere"
    assert refusal.value.message == (
        "The post-statement of shop.revenue is new or changed and writes rows into `ops.log` "
        "(INSERT). Nothing was built."
    )
