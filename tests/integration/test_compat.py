"""What `worker/sqlmesh_compat` leans on in SQLMesh, tried against the installed version."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest
import sqlmesh
from sqlmesh.core import context_diff
from sqlmesh.core import dialect as d
from sqlmesh.core.config import Config, DuckDBConnectionConfig
from sqlmesh.core.config.connection import SparkConnectionConfig
from sqlmesh.core.console import get_console
from sqlmesh.core.context import Context
from sqlmesh.core.environment import Environment, EnvironmentNamingInfo, EnvironmentStatements
from sqlmesh.core.macros import RuntimeStage, macro
from sqlmesh.core.model import load_sql_based_model
from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig
from sqlmesh.utils.date import now_timestamp
from sqlmesh.utils.errors import ConfigError
from sqlmesh.utils.jinja import JinjaMacroRegistry

from ci_bot.errors import BadInput
from ci_bot.protocol.supported_versions import is_supported
from ci_bot.worker import sqlmesh_compat
from tests.projects import Shop, write_shop
from tests.projects.duck import run_prod, write_duck_shop
from tests.security.forked import forked
from tests.unit.sql.lineage import dbt_builtins


def test_version__is_one_that_is_supported() -> None:
    assert is_supported(sqlmesh.__version__)


def test_lazy_spark__starts_nothing_for_a_load(tmp_path: Path) -> None:
    shop = write_shop(tmp_path)
    started: list[str] = []
    configs = sqlmesh_compat.read_sqlmesh_configs([shop.project])
    sqlmesh_compat.let_sqlmesh_start_spark_late(configs, lambda: started.append("spark"))
    sqlmesh_compat.prepare_sqlmesh_configs(configs, tmp_path / "cache")

    context = Context(paths=[str(shop.project)], config=configs, load=False)

    assert context.default_catalog == "spark_catalog"
    assert sqlmesh_compat.has_lazy_sqlmesh_spark(configs)
    assert started == []


@pytest.mark.parametrize(
    ("settings", "defaults", "expected"),
    [
        ({}, "", "spark_catalog"),
        ({"catalog": "lake"}, "spark.sql.defaultCatalog other", "lake"),
        ({"config": {"spark.sql.defaultCatalog": "ice"}}, "spark.sql.defaultCatalog other", "ice"),
        ({}, "# a comment\nspark.sql.defaultCatalog=filed\n", "filed"),
        ({}, "spark.sql.defaultCatalog   spaced\n", "spaced"),
    ],
)
def test_configured_catalog__in_sparks_own_order(
    tmp_path: Path, settings: dict[str, object], defaults: str, expected: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    connection = SparkConnectionConfig(config_dir=str(tmp_path), **settings)

    assert sqlmesh_compat.read_catalog_of_sqlmesh_connection(connection) == expected


def test_scan_packages_once__keeps_the_answer() -> None:
    sqlmesh_compat.let_sqlmesh_scan_packages_once()
    scan = context_diff.metadata.packages_distributions

    assert scan() is scan()
    sqlmesh_compat.let_sqlmesh_scan_packages_once()
    assert context_diff.metadata.packages_distributions is scan


def test_scan_packages_once__waits_until_a_model_imports_something(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)
    code = "from sqlmesh import macro\nimport duckdb\n\n\n@macro()\ndef one(evaluator):\n"
    scanned = [False, False]
    found = []

    def plan() -> tuple[bool, dict[str, str]]:
        sqlmesh_compat.let_sqlmesh_scan_packages_once()
        context = Context(paths=[str(shop.project)])
        diff = context.plan_builder("pr_1", skip_tests=True).build().context_diff
        context.close()
        known: object = context_diff.metadata.packages_distributions()
        return "_found" in vars(known), dict(diff.requirements)

    for number in range(2):
        scanned[number], requirements = forked(plan, tmp_path)
        found.append(requirements)
        shop.write("macros/one.py", f"{code}    return len(duckdb.__name__)\n")
        shop.write("models/two.sql", "MODEL (name shop.two, kind FULL);\n\nSELECT @one() AS n")
    assert scanned == [False, True]
    assert found == [{}, {"duckdb": duckdb.__version__}]


def test_analytics_off__nobody_looks_who_has_called(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)

    def plan() -> tuple[bool, int]:
        sqlmesh_compat.disable_sqlmesh_analytics()
        forget("IPython", "sqlmesh.magics")
        context = Context(paths=[str(shop.project)])
        changed = context.plan_builder("pr_1", skip_tests=True).build().new_snapshots
        return "sqlmesh.magics" in sys.modules, len(changed)

    imported, new = forked(plan, tmp_path)
    assert not imported
    assert new > 0


def forget(*packages: str) -> None:
    """Takes these, and what is in them, out of the modules that are imported."""
    for name in list(sys.modules):
        if any(f"{name}.".startswith(f"{package}.") for package in packages):
            del sys.modules[name]


def test_engines__pyspark_is_found_without_its_import(tmp_path: Path) -> None:
    shop = write_shop(tmp_path / "spark")
    other = write_shop(tmp_path / "other")
    other.edit("config.yaml", "type: spark", "type: snowflake")

    def read(project: Path, own: ModuleType | None = None) -> str:
        sqlmesh_compat.skip_engine_import_of_sqlmesh()
        forget("pyspark")
        if own is not None:
            sys.modules["pyspark"] = own
        try:
            sqlmesh_compat.read_sqlmesh_configs([project])
        except ConfigError as error:
            return str(error)
        return "imported" if "pyspark" in sys.modules else "found"

    assert forked(lambda: read(shop.project), tmp_path) == "found"
    assert forked(lambda: read(shop.project, ModuleType("pyspark")), tmp_path) == "imported"
    assert "Failed to import the 'snowflake' engine" in forked(
        lambda: read(other.project), tmp_path
    )


def test_duckdb_state__opened_read_only_refuses_writes(tmp_path: Path) -> None:
    path = tmp_path / "state.duckdb"
    duckdb.connect(str(path)).close()
    adapter = sqlmesh_compat.open_duckdb_state_read_only(DuckDBConnectionConfig(database=str(path)))

    with pytest.raises(duckdb.Error, match="read-only"):
        adapter.execute("CREATE TABLE t (a INT)")
    adapter.close()


@pytest.fixture
def built(tmp_path: Path) -> Shop:
    shop = write_duck_shop(tmp_path)
    run_prod(shop, "2024-01-11")
    return shop


NEVER = 2**45  # in milliseconds, as the state's times are


def planned(context: Context, *names: str) -> list[Environment]:
    """Environments as the state has them once they are planned, and each is whole."""
    for name in names:
        context.apply(context.plan_builder(name, skip_tests=True).build())
    stored = [context.state_sync.get_environment(name) for name in names]
    return [item for item in stored if item is not None and item.finalized_ts]


def test_environment_record__that_is_marked_as_unfinished__is_deleted_alone(built: Shop) -> None:
    built.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 50")
    context = Context(paths=[str(built.project)])
    one, two, whole = planned(context, "pr_1", "pr_2", "whole")
    context.state_sync.invalidate_environment("pr_2")
    for item in (one, two):
        sqlmesh_compat.mark_sqlmesh_environment_unfinished(context, item, lives_until=0)

    assert sqlmesh_compat.delete_sqlmesh_environment_record(context, one)
    assert sqlmesh_compat.delete_sqlmesh_environment_record(context, one), "it is gone by then"
    assert not sqlmesh_compat.delete_sqlmesh_environment_record(context, whole), "nobody marked it"

    left = {environment.name for environment in context.state_sync.get_environments()}
    statements = context.state_sync.get_environment_statements("pr_1")
    context.close()
    assert left == {"prod", "pr_2", "whole"}
    assert statements == []


def test_environment_record__that_is_marked_as_unfinished__waits_for_no_janitor(
    built: Shop,
) -> None:
    built.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 50")
    context = Context(paths=[str(built.project)])
    lives, over = planned(context, "lives", "over")
    context.state_sync.invalidate_environment("over")
    until = now_timestamp() + 60_000
    for item in (lives, over):
        sqlmesh_compat.mark_sqlmesh_environment_unfinished(context, item, lives_until=until)

    marked = {item.name: item for item in context.state_sync.get_environments()}
    context.run_janitor(ignore_ttl=False)
    after = {item.name for item in context.state_sync.get_environments()}
    plan = context.plan_builder("lives", skip_tests=True).build()
    context.close()

    assert marked["lives"].expiration_ts == lives.expiration_ts, "its time is what it was"
    assert marked["over"].expiration_ts == until
    assert [marked[name].finalized_ts for name in ("lives", "over")] == [None, None]
    assert marked["prod"].finalized_ts
    assert after == {"prod", "lives", "over"}
    assert plan.context_diff.has_changes, "its views are made again by the next plan"


def test_environment_record__of_one_that_was_planned_again_meanwhile__stays(built: Shop) -> None:
    built.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 50")
    context = Context(paths=[str(built.project)])
    (before,) = planned(context, "pr_1")
    built.edit("models/top_customers.sql", "r.revenue > 50", "r.revenue > 40")
    context.load()
    planned(context, "pr_1")

    sqlmesh_compat.mark_sqlmesh_environment_unfinished(context, before, lives_until=NEVER)

    assert not sqlmesh_compat.delete_sqlmesh_environment_record(context, before)
    now = context.state_sync.get_environment("pr_1")
    context.close()
    assert now is not None
    assert now.finalized_ts, "another plan's promotion is not ours to undo"
    assert (now.expiration_ts or 0) < NEVER


def test_merge_nothing_from_state__leaves_out_what_other_projects_have(tmp_path: Path) -> None:
    shop = write_duck_shop(tmp_path)
    config = shop.project / "config.yaml"
    config.write_text(f"project: shop\n{config.read_text()}")
    run_prod(shop, "2024-01-11")
    shop.edit("config.yaml", "project: shop", "project: stock")
    for path in (shop.project / "models").iterdir():
        path.unlink()
    shop.write("models/stock.sql", "MODEL (name shop.stock, kind FULL);\n\nSELECT 1 AS item\n")
    models = []
    for own in (False, True):
        context = Context(paths=[str(shop.project)], load=False)
        if own:
            sqlmesh_compat.load_sqlmesh_context_without_state(context)
        context.load()
        models.append(len(context.models))
        assert sqlmesh_compat.is_sqlmesh_state_shared(context) is not own
        (stock,) = [item for item in context.snapshots.values() if "stock" in item.name]
        # What is whose is known all the same: its lifetime is the project's and not the default.
        assert stock.node.project == "stock"
        context.close()

    assert models == [5, 1]


def test_plan_with_caps__does_not_extend_prods_tables(built: Shop) -> None:
    built.edit("models/top_customers.sql", "r.revenue > 100", "r.revenue > 60")
    context = Context(paths=[str(built.project)])
    builder = context.plan_builder("pr_1", end="2024-02-01", skip_tests=True)

    sqlmesh_compat.let_sqlmesh_keep_model_caps(builder)

    missing = {item.snapshot_id.name for item in builder.build().missing_intervals}
    context.close()
    assert not any("orders" in name for name in missing)


def broken_shop(tmp_path: Path) -> Shop:
    """The shop with two models that do not parse and a macro that does not import."""
    shop = write_duck_shop(tmp_path)
    for name in ("one", "two"):
        shop.write(f"models/{name}.sql", f"MODEL (name shop.{name});\n\nSELECT ({name!r}\n")
    shop.write(
        "macros/wrong.py",
        "from sqlmesh import macro\n\n\n@macro()\ndef good9(e): ...\n\n\nraise RuntimeError('wrong')\n",
    )
    return shop


def context_without(shop: Shop, tmp_path: Path, *ignored: str) -> Context:
    configs = sqlmesh_compat.read_sqlmesh_configs([shop.project])
    sqlmesh_compat.prepare_sqlmesh_configs(configs, tmp_path / "cache")
    sqlmesh_compat.let_sqlmesh_ignore_files(configs, [shop.project / path for path in ignored])
    return Context(paths=[str(shop.project)], config=configs, load=False)


def test_ignore_files__leaves_out_these_and_no_others(tmp_path: Path) -> None:
    shop = broken_shop(tmp_path)
    context = context_without(shop, tmp_path, "macros/wrong.py", "models/one.sql", "models/two.sql")
    context.load()
    assert '"shop"."orders"' in str(list(context.models))


@pytest.mark.parametrize("processes", [1, 2])
def test_model_failures__are_all_and_not_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    monkeypatch.setattr("sqlmesh.core.constants.MAX_FORK_WORKERS", processes)
    shop = broken_shop(tmp_path)
    found: list[tuple[Path, BaseException]] = []
    with sqlmesh_compat.collect_sqlmesh_model_failures(found), pytest.raises(ConfigError) as first:
        context_without(shop, tmp_path, "macros/wrong.py").load()
    assert {path.name for path, _ in found} == {"one.sql", "two.sql"}
    # Each as SQLMesh itself would have raised it.
    told = [str(sqlmesh_compat.make_sqlmesh_load_error(path, problem)) for path, problem in found]
    assert str(first.value) in told


def test_registries_kept__a_load_that_fails_leaves_no_macro_behind(tmp_path: Path) -> None:
    shop = broken_shop(tmp_path)
    with sqlmesh_compat.restore_sqlmesh_registries(), pytest.raises(RuntimeError, match="wrong"):
        context_without(shop, tmp_path).load()
    assert "good9" not in macro.get_registry()


def test_throwaway_state_again__reads_what_another_process_has_closed(tmp_path: Path) -> None:
    context = context_without(write_duck_shop(tmp_path), tmp_path)
    sqlmesh_compat.make_throwaway_sqlmesh_state(tmp_path / "own.duckdb", context).close()
    state = sqlmesh_compat.open_throwaway_sqlmesh_state(tmp_path / "own.duckdb", context)
    assert state.get_versions().schema_version > 0
    assert state.get_environments() == []


def test_executed_text__is_what_the_adapter_sends() -> None:
    (tree,) = d.parse(
        "SELECT a.`x y`, 'it' AS b FROM s.t AS a -- a comment", default_dialect="spark"
    )

    assert sqlmesh_compat.render_as_sqlmesh_executes(tree, "spark") == (
        "SELECT `a`.`x y`, 'it' AS `b` FROM `s`.`t` AS `a`"
    )


def test_table_clauses__hold_format_and_properties() -> None:
    model = load_sql_based_model(
        d.parse(
            "MODEL (name a.b, kind FULL, storage_format parquet, physical_properties (x = 'y'));"
            "SELECT 1 AS c",
            default_dialect="spark",
        ),
        dialect="spark",
    )

    text = sqlmesh_compat.render_sqlmesh_table_clauses(model, model.physical_properties, "spark")

    assert text == "USING PARQUET TBLPROPERTIES ('x'='y')"
    assert (
        sqlmesh_compat.render_sqlmesh_table_clauses(
            model.copy(update={"storage_format": None}), {}, "spark"
        )
        == ""
    )


def test_rendered_statement__tells_no_text_from_a_question_to_the_engine() -> None:
    model = load_sql_based_model(
        d.parse(
            "MODEL (name a.b, kind FULL); SELECT 1 AS c; @IF(@runtime_stage = 'creating', DROP "
            "TABLE @this_model)",
            default_dialect="spark",
        ),
        dialect="spark",
    )
    (tree,) = model.post_statements

    (dropped,) = (
        sqlmesh_compat.render_sqlmesh_statement(model, tree, runtime_stage=RuntimeStage.CREATING)
        or []
    )

    assert dropped.sql("spark") == "DROP TABLE `a`.`b`"
    assert (
        sqlmesh_compat.render_sqlmesh_statement(model, tree, runtime_stage=RuntimeStage.EVALUATING)
        == []
    )


def test_rendered_environment_statements__is_sqlmeshs_own_text() -> None:
    sql = "/* x */ INSERT INTO a.b SELECT 1, @this_env AS e"
    item = EnvironmentStatements(before_all=[sql], after_all=[], python_env={})
    (tree,) = d.parse(sql, default_dialect="spark")
    context = {"environment_naming_info": EnvironmentNamingInfo(name="pr_1")}

    ours = sqlmesh_compat.render_sqlmesh_environment_statements(
        item, tree, "spark", None, **context, runtime_stage=RuntimeStage.BEFORE_ALL
    )

    assert ours == item.render_before_all("spark", **context)
    assert "'pr_1'" in ours[0]


# --------------------------------------------------------------------------- SQLMesh's own CI bot

WRITTEN = {
    "type": "github",
    "auto_categorize_changes": {"sql": "off"},
    "default_pr_start": "1 week ago",
    "pr_preview_min_intervals": 1,  # its default, and written
    "skip_pr_backfill": False,
    "pr_environment_name": None,
}


def test_written_bot_settings__are_those_that_stand_there() -> None:
    assert sqlmesh_compat.list_written_sqlmesh_bot_settings(Config()) == {}
    bare = Config.parse_obj({"cicd_bot": {"type": "github"}})
    # SQLMesh has put its own `plan:` into two more fields by now.
    assert bare.cicd_bot is not None
    assert {"auto_categorize_changes_", "pr_include_unmodified_"} <= bare.cicd_bot.fields_set
    assert sqlmesh_compat.list_written_sqlmesh_bot_settings(bare) == {"type": "github"}

    known = sqlmesh_compat.list_known_sqlmesh_bot_settings(GithubCICDBotConfig())
    written = {name: value for name, value in WRITTEN.items() if name in known}
    found: dict[str, Any] = sqlmesh_compat.list_written_sqlmesh_bot_settings(
        Config.parse_obj({"cicd_bot": written})
    )

    assert found.pop("auto_categorize_changes").sql.value == "off"
    expected = {
        "type": "github",
        "default_pr_start": "1 week ago",
        "pr_preview_min_intervals": 1,  # since 0.236
        "skip_pr_backfill": False,
    }
    assert found == {name: value for name, value in expected.items() if name in known}


def test_written_bot_settings__of_a_class_of_the_projects_own_are_no_defaults(
    tmp_path: Path,
) -> None:
    """SQLMesh makes such a configuration anew, with every key set."""
    (tmp_path / "config.py").write_text(
        "from sqlmesh.core.config import Config, ModelDefaultsConfig\n"
        "from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig\n"
        "class Ours(Config):\n    pass\n"
        "config = Ours(model_defaults=ModelDefaultsConfig(dialect='duckdb'),\n"
        "    cicd_bot=GithubCICDBotConfig(pr_min_intervals=2, default_pr_start='1 day ago'))\n"
    )
    (config,) = sqlmesh_compat.read_sqlmesh_configs([tmp_path]).values()

    assert sqlmesh_compat.list_written_sqlmesh_bot_settings(config) == {
        "pr_min_intervals": 2,
        "default_pr_start": "1 day ago",
    }


def test_known_bot_settings__are_called_as_in_a_configuration() -> None:
    known = sqlmesh_compat.list_known_sqlmesh_bot_settings(GithubCICDBotConfig())
    assert {"auto_categorize_changes", "skip_pr_backfill", "prod_branch_name", "type"} <= known
    assert not any(name.endswith("_") for name in known)


def test_plan_builder__refuses_what_the_installed_version_does_not_know(built: Shop) -> None:
    context = Context(paths=[str(built.project)])
    try:
        with pytest.raises(BadInput, match=r"SQLMesh 0\.\d+\.\d+ does not know `of-the-future`"):
            sqlmesh_compat.make_sqlmesh_plan_builder(
                context, "pr_1", skip_tests=True, of_the_future=3
            )
        # What nobody has said is not asked of any version.
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context, "pr_1", skip_tests=True, include_unmodified=True, of_the_future=None
        )
        assert builder.build().include_unmodified
    finally:
        context.close()


def test_selection__by_git_goes_by_the_files_that_are_given(built: Shop) -> None:
    """The directory is no git repository, so SQLMesh's own git would fail here."""
    context = Context(paths=[str(built.project)])
    changed = [built.project / "models" / "orders.sql", built.project / "models" / "gone.sql"]
    try:
        sqlmesh_compat.let_sqlmesh_select_by_changed_files(
            context, changed, ["main", "origin/main"]
        )
        for text in ("git:main", "git:origin/main"):
            (found,) = sqlmesh_compat.expand_sqlmesh_selection(context, text)
            assert found.endswith('"orders"')
        assert len(sqlmesh_compat.expand_sqlmesh_selection(context, "git:main+")) > 1
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context, "pr_1", skip_tests=True, select_models=["git:main"]
        )
        assert not builder.build().context_diff.has_snapshot_changes
        with pytest.raises(BadInput, match="git:release") as refused:
            sqlmesh_compat.expand_sqlmesh_selection(context, "git:release")
        assert refused.value.hint == "Write `git:main` or `git:origin/main`."
        sqlmesh_compat.let_sqlmesh_select_by_changed_files(context, None, ["main"])
        with pytest.raises(BadInput, match="not known") as unknown:
            sqlmesh_compat.expand_sqlmesh_selection(context, "git:main")
        assert "fetch-depth: 2" in (unknown.value.hint or "")
    finally:
        context.close()


@pytest.mark.parametrize(
    ("kind", "later"),
    [
        ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", 2),
        ("INCREMENTAL_UNMANAGED", 2),
        ("FULL", 1),
        ("VIEW", 1),
    ],
)
def test_render_on_earlier_runs__is_a_later_run_to_dbt(kind: str, later: int) -> None:
    text = f"""
    MODEL (name db.m, kind {kind});
    JINJA_QUERY_BEGIN; SELECT {{{{ 2 if is_incremental() else 1 }}}} AS id JINJA_END;
    """
    macros = JinjaMacroRegistry(create_builtins_module=dbt_builtins.__name__)
    model = load_sql_based_model(d.parse(text), jinja_macros=macros)
    assert model.render_query().sql() == 'SELECT 1 AS "id"'
    assert (
        sqlmesh_compat.render_sqlmesh_model_on_earlier_runs(model).sql()
        == f'SELECT {later} AS "id"'
    )
    assert model.render_query().sql() == 'SELECT 1 AS "id"'  # and nothing is kept of it


def test_plan_evaluator__creates_the_table_of_a_model_that_gets_no_interval(built: Shop) -> None:
    """SQLMesh creates it where the plan builds nothing, and forgets it beside batches of others."""
    month, reader = "MODEL (name shop.{name}, kind {kind});\n\n{query}\n", "shop.month"
    kind = "INCREMENTAL_BY_TIME_RANGE (time_column order_date), cron '@monthly'"
    query = (
        "SELECT order_date, amount FROM shop.orders WHERE order_date BETWEEN @start_ds AND @end_ds"
    )
    built.write("models/month.sql", month.format(name="month", kind=kind, query=query))
    query = f"SELECT COUNT(*) AS entries FROM {reader}"
    built.write("models/of_month.sql", month.format(name="of_month", kind="FULL", query=query))
    context = Context(paths=[str(built.project)])
    try:
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context, "pr_1", start="2024-01-03", execution_time="2024-01-11", skip_tests=True
        )
        plan = sqlmesh_compat.build_sqlmesh_plan(builder)
        missing = {item.snapshot_id.name.split('"')[-2] for item in plan.missing_intervals}
        assert missing == {"of_month"}
        evaluator = sqlmesh_compat.make_sqlmesh_evaluator(
            context, get_console(), lambda *_: None, max_workers=None, promotion=nullcontext
        )
        evaluator.evaluate(plan.to_evaluatable())

        assert context.engine_adapter.fetchone("SELECT entries FROM shop__pr_1.of_month") == (0,)
        assert context.engine_adapter.fetchone("SELECT COUNT(*) FROM shop__pr_1.month") == (0,)
    finally:
        context.close()
