"""What prod's state says of unchanged models gives the plan that working everything out gives."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlmesh.core.constants
from sqlmesh.core import dialect as d
from sqlmesh.core.context import Context
from sqlmesh.core.model import load_sql_based_model, load_sql_based_models
from sqlmesh.utils.date import to_timestamp

from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project import base_branch
from ci_bot.worker.project.configuration import ProjectPlace
from ci_bot.worker.runtime.process import WorkerPhaseClock
from ci_bot.worker.sqlmesh_compat.skipped_work import leave_sqlmesh_query_in_file, lists_columns
from tests import nights
from tests.corpus.labelled import read_cases
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.security.forked import forked

UNTIL = "2024-01-05"
CASES = read_cases(Path(__file__).parent.parent / "corpus")
EVERY = 25

MORE = {
    "models/wide.sql": "MODEL (name shop.wide, kind FULL);\n\nSELECT o.*, 1 AS one "
    "FROM shop.orders AS o /* all of them */",
    "models/named.sql": "MODEL (name shop.named, kind VIEW);\n\nWITH W AS (SELECT * FROM shop.wide)"
    "\nSELECT w.order_id, /* how much */ w.amount, w.one AS One -- the first\nFROM w",
    "models/fixed.sql": "MODEL (name shop.fixed, kind FULL, columns (a INT, b TEXT));\n\n"
    "SELECT n.order_id AS a, CAST(n.amount AS TEXT) AS b FROM shop.named AS n "
    "LEFT JOIN elsewhere.table_ AS t ON t.a = n.order_id",
    "models/coded.sql": "MODEL (name shop.coded, kind FULL);\n\n"
    "SELECT @from_file() AS told, f.a FROM shop.fixed AS f",
    "models/valued.sql": "MODEL (name shop.valued, kind FULL);\n\n"
    "SELECT c.told, c.a + @VAR('much') AS more, @execution_ds AS at_ FROM shop.coded AS c",
    "models/templated.sql": "MODEL (name shop.templated, kind FULL);\n\nJINJA_QUERY_BEGIN;\n"
    "SELECT v.told, v.more, {{ var('much') }} AS much FROM shop.valued AS v\nJINJA_END;",
    "models/last.sql": "MODEL (name shop.last, kind FULL, grain told, tags (a));\n\n"
    "SELECT t.*, w.one FROM shop.templated AS t CROSS JOIN shop.wide AS w",
    "models/coded.py": "from sqlmesh import model\n\n\n@model('shop.python', columns={'a': 'int'}, "
    "depends_on=['shop.fixed'])\ndef execute(context, start, end, execution_time, **kwargs):\n"
    "    return None\n",
    "models/after_python.sql": "MODEL (name shop.after_python, kind FULL);\n\n"
    "SELECT p.*, e.x FROM shop.python AS p CROSS JOIN outside.given AS e",
    "external_models.yaml": "- name: outside.given\n  columns:\n    x: int\n    y: text\n",
    "macros/from_file.py": "from pathlib import Path\nfrom sqlmesh import macro\n\n\n@macro()\n"
    "def from_file(evaluator):\n"
    "    return (Path(__file__).parent.parent / 'told.txt').read_text().strip()\n",
    "told.txt": "CAST(1 AS INT)",
}
EDITS: dict[str, tuple[str, str, str]] = {
    "type": ("models/orders.sql", "* 10 AS INT", "* 10 AS BIGINT"),
    "same columns": ("models/orders.sql", "* 10 AS INT", "* 11 AS INT"),
    "more columns": ("models/orders.sql", "AS amount", "AS amount,\n  2 AS two"),
    "star's own": ("models/wide.sql", "1 AS one", "'1' AS one"),
    "comment of a column": ("models/named.sql", "how much", "how many"),
    "comment": ("models/wide.sql", "all of them", "some of them"),
    "external": ("external_models.yaml", "x: int", "x: bigint"),
    "unused external": ("external_models.yaml", "y: text", "y: int"),
    "seed": ("seeds/customers.csv", "3,Alan", "4,Alan"),
    "file that a macro reads": ("told.txt", "INT", "TEXT"),
    "macro": ("macros/from_file.py", ".strip()", ".strip() + ' + 1'"),
    "variable": ("config.yaml", "much: 1", "much: 1.5"),
    "grain": ("models/last.sql", "grain told", "grain one"),
    "tags": ("models/fixed.sql", "kind FULL", "kind FULL, tags (b)"),
    "columns said": ("models/fixed.sql", "a INT", "a BIGINT"),
    "python": ("models/coded.py", "'a': 'int'", "'a': 'text'"),
    "dialect": ("models/named.sql", "kind VIEW", "kind VIEW, dialect spark"),
    "one that is gone": ("models/templated.sql", "shop.valued", "gone.valued"),
    "what a table is": ("models/fixed.sql", "elsewhere.table_", "shop.top_customers"),
    "a column that is none": ("models/valued.sql", "c.told", "c.untold"),
    "default": ("config.yaml", "start: 2024-01-01", "start: 2024-01-01\n  cron: '@hourly'"),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    root = tmp_path_factory.mktemp("as_in_prod")
    shop = write_duck_shop(root)
    for name, text in MORE.items():
        shop.write(name, text)
    config = shop.project / "config.yaml"
    config.write_text(config.read_text("utf-8") + "\nvariables:\n  much: 1\n", encoding="utf-8")
    forked(lambda: promoted(shop), root)
    return shop


def opened(shop: Shop, cache: Path, *, load: bool = True) -> Context:
    configs = sqlmesh_compat.read_sqlmesh_configs([shop.project])
    sqlmesh_compat.prepare_sqlmesh_configs(configs, cache)
    return Context(paths=[str(shop.project)], config=configs, load=load)


def promoted(shop: Shop) -> None:
    """The project as it stands becomes prod, with nothing built."""
    context = opened(shop, shop.root / "cache")
    state = sqlmesh_compat.make_throwaway_sqlmesh_state(shop.state, context)
    sqlmesh_compat.give_sqlmesh_state(context, state)
    base_branch.promote_base_project_as_prod(context, state, to_timestamp(UNTIL))
    state.close()


def told(context: Any, *, spared: bool) -> Any:
    """All that a plan says, and what models say of themselves."""
    try:
        asked = {"execution_time": UNTIL, "skip_tests": True}
        if spared:
            plan = sqlmesh_compat.build_sqlmesh_plan(
                sqlmesh_compat.make_sqlmesh_plan_builder(context, "pr_1", **asked)
            )
        else:
            plan = context.plan_builder("pr_1", **asked).build()
    except Exception as error:
        return repr(error)
    snapshots = {
        snapshot.name: (
            snapshot.fingerprint.to_identifier(),
            str(snapshot.change_category),
            sorted(parent.name for parent in snapshot.parents),
        )
        for snapshot in plan.snapshots.values()
    }
    models = {
        model.fqn: (
            sorted(model.depends_on),
            model.mapping_schema,
            {name: kind.sql() for name, kind in (model.columns_to_types or {}).items()},
            model.column_descriptions,
            model.render_query().sql() if model.is_sql and model.render_query() else None,
            sorted(rule.__name__ for rule in model.violated_rules_for_query),
            # Tables of its schema come in the order of a set, which has none.
            json.loads(model.json()),
        )
        for model in context.models.values()
    }
    missing = sorted((str(m.snapshot_id), m.intervals) for m in plan.missing_intervals)
    diff = plan.context_diff
    changed = sorted(diff.modified_snapshots), sorted(map(str, diff.added))
    return snapshots, models, missing, changed, sorted(map(str, diff.removed_snapshots))


def loaded_and_told(shop: Shop, cache: Path, *, spared: bool) -> Any:
    sqlmesh.core.constants.MAX_FORK_WORKERS = 2 if spared else 1
    if spared:
        sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
    context = opened(shop, cache, load=False)
    try:
        with sqlmesh_compat.let_sqlmesh_reuse_prod_models(context) if spared else nullcontext():
            context.load()
        return told(context, spared=spared)
    except Exception as error:
        return repr(error)
    finally:
        context.close()


def both_ways(shop: Shop, scratch: Path) -> Any:
    """What is told; neither side finds a cache, which knows nothing of a file that a macro reads."""

    def of(*, spared: bool) -> Any:
        with TemporaryDirectory(dir=scratch) as cache:
            return forked(lambda: loaded_and_told(shop, Path(cache), spared=spared), scratch)

    plain = of(spared=False)
    assert of(spared=True) == plain
    return plain


def edited(shop: Shop, names: list[str], then: Callable[[], Any]) -> Any:
    kept = {path: path.read_bytes() for path in {shop.project / EDITS[name][0] for name in names}}
    try:
        for name in names:
            path, old, new = EDITS[name]
            text = (shop.project / path).read_text("utf-8")
            assert old in text or len(names) > 1, f"{old} is not in {path}"
            (shop.project / path).write_text(text.replace(old, new), encoding="utf-8")
        return then()
    finally:
        for file, content in kept.items():
            file.write_bytes(content)


# By day one of each kind of file: a model, a comment, a seed, a macro's file, the configuration.
@pytest.mark.parametrize(
    "name",
    nights.cases(
        EDITS.keys(),
        by_day=[
            "more columns",
            "comment of a column",
            "seed",
            "file that a macro reads",
            "default",
        ],
    ),
)
@pytest.mark.by_day(1)
def test_plan__is_the_same_after_each_kind_of_edit(shop: Shop, tmp_path: Path, name: str) -> None:
    assert edited(shop, [name], lambda: both_ways(shop, tmp_path))


@pytest.mark.night
def test_plan__sees_the_file_that_a_macro_reads(shop: Shop, tmp_path: Path) -> None:
    *_, changed, _ = edited(shop, ["file that a macro reads"], lambda: both_ways(shop, tmp_path))
    assert '"warehouse"."shop"."valued"' in changed[0]


@pytest.mark.night
def test_plan__is_the_same_after_edits_by_chance(shop: Shop, tmp_path: Path) -> None:
    chance = random.Random(15)
    for _ in range(300):
        names = chance.sample(sorted(EDITS), chance.randint(2, 4))
        edited(shop, names, lambda: both_ways(shop, tmp_path))


def _seen(node: Any) -> Any:
    """A tree that went through a pipe has lost empty lists, and the text that it was made of."""
    places = {key: value for key, value in node.meta.items() if key not in ("sql", "tables")}
    return type(node).__name__, node.sql("duckdb"), node.comments or [], places


def trees(shop: Shop, cache: Path, *, spared: bool) -> Any:
    """Every node of every query with its place and comments, and which queries came as a text."""
    sqlmesh.core.constants.MAX_FORK_WORKERS = 2 if spared else 1
    if spared:
        sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
    context = opened(shop, cache, load=False)
    try:
        with sqlmesh_compat.let_sqlmesh_reuse_prod_models(context) if spared else nullcontext():
            context.load()
        models = [model for model in context.models.values() if model.is_sql]
        came = {model.name for model in models if model.query_._parsed is None}
        found = {model.name: [_seen(node) for node in model.query.walk()] for model in models}
        return found, came
    finally:
        context.close()


def test_query__is_the_tree_that_was_loaded(shop: Shop, tmp_path: Path) -> None:
    plain, _ = forked(lambda: trees(shop, tmp_path / "plain", spared=False), tmp_path)
    found, came = forked(lambda: trees(shop, tmp_path / "spared", spared=True), tmp_path)
    assert found == plain
    assert {"shop.orders", "shop.wide", "shop.revenue"} <= came


def test_query__of_a_file_that_was_rewritten_is_the_loaded_text(tmp_path: Path) -> None:
    path = tmp_path / "one.sql"
    path.write_text("MODEL (name a.one, kind FULL);\n\nSELECT 1 AS x -- first", encoding="utf-8")
    expressions = d.parse(path.read_text("utf-8"), default_dialect="duckdb")
    (model,) = load_sql_based_models(
        expressions, get_variables=lambda _: {}, path=path, dialect="duckdb"
    )
    leave_sqlmesh_query_in_file(model, file_dialect="duckdb", lists_columns=True)
    path.write_text("MODEL (name a.one, kind FULL);\n\nSELECT 2 AS x", encoding="utf-8")

    assert model.query.sql() == "SELECT 1 AS x"
    path.unlink()
    leave_sqlmesh_query_in_file(model, file_dialect="duckdb", lists_columns=True)
    assert model.query.sql() == "SELECT 1 AS x"


KNOWN = {
    "SELECT a.x, a.y AS z FROM a": True,
    "WITH a AS (SELECT 1 AS x) SELECT x FROM a": True,
    "SELECT * FROM a": False,
    "SELECT a.* FROM a": False,
    "SELECT a.* EXCEPT (x), x FROM a": False,
    "SELECT x, 1 FROM a": False,
    "SELECT x, X FROM a": False,
    "SELECT x AS y, z AS y FROM a": False,
    "SELECT x, @y AS y FROM a": False,
    "SELECT x FROM a UNION SELECT x FROM b": False,
    "SELECT COUNT(*) FROM a": False,
    "SELECT COLUMNS('x') FROM a": False,
}


@pytest.mark.parametrize("query", KNOWN)
def test_columns__are_known_of_a_query_that_lists_them(query: str) -> None:
    parsed = d.parse(f"MODEL (name b.one, kind FULL);\n\n{query}", default_dialect="duckdb")
    model = load_sql_based_model(parsed, dialect="duckdb", variables={"y": 1})
    assert lists_columns(model) == KNOWN[query]
    if KNOWN[query]:
        assert model.columns_to_types is not None


def optimized(shop: Shop, cache: Path, *, planned: bool = False) -> set[str]:
    """The models whose query the load has optimized, or the load and the plan."""
    context = opened(shop, cache, load=False)
    try:
        with sqlmesh_compat.let_sqlmesh_reuse_prod_models(context):
            context.load()
        if planned:
            sqlmesh_compat.build_sqlmesh_plan(
                context.plan_builder("pr_1", execution_time=UNTIL, skip_tests=True)
            )
        return {
            model.name
            for model in context.models.values()
            if model.is_sql and model._query_renderer._optimized_cache is not None
        }
    finally:
        context.close()


def test_load__optimizes_what_changed_and_what_it_reads(shop: Shop, tmp_path: Path) -> None:
    def load() -> set[str]:
        found: set[str] = forked(lambda: optimized(shop, tmp_path / "cache"), tmp_path)
        return found

    coded = {"shop.coded", "shop.fixed", "shop.templated", "shop.valued"}
    always = coded | {"shop.named"}
    assert load() == always, "code, templates, what those read, and a comment at One, which is one"
    same = edited(shop, ["same columns"], load)
    assert same - always == {"shop.orders"}, "columns stay, so that no reader is looked at"
    wider = edited(shop, ["type"], load)
    assert {"shop.orders", "shop.wide", "shop.named"} <= wider


def test_plan__optimizes_nothing_below_an_edit_that_lists_its_columns(
    shop: Shop, tmp_path: Path
) -> None:
    def plan() -> set[str]:
        found: set[str] = forked(
            lambda: optimized(shop, tmp_path / "cache", planned=True), tmp_path
        )
        return found

    found = edited(shop, ["same columns"], plan)
    assert "shop.wide" in found, "a star stands for what has to be worked out"
    assert not {"shop.revenue", "shop.top_customers"} & found


def plan_with_a_stored_model_that_cannot_be_parsed(shop: Shop, cache: Path) -> list[str]:
    """The names of the models that the plan changes."""
    context = opened(shop, cache, load=False)
    try:
        sqlmesh_compat.get_sqlmesh_state_adapter(context).execute(
            "UPDATE sqlmesh._snapshots SET snapshot = "
            """replace(snapshot, '"source_type": "sql"', '"source_type": "none"') """
            """WHERE name LIKE '%revenue%'"""
        )
        context.load()
        builder = sqlmesh_compat.make_sqlmesh_plan_builder(
            context, "pr_1", execution_time=UNTIL, skip_tests=True
        )
        return sorted(sqlmesh_compat.build_sqlmesh_plan(builder).context_diff.modified_snapshots)
    finally:
        context.close()


def test_plan__parses_no_stored_model_that_is_as_loaded(shop: Shop, tmp_path: Path) -> None:
    def plan() -> list[str]:
        return forked(
            lambda: plan_with_a_stored_model_that_cannot_be_parsed(shop, tmp_path / "cache"),
            tmp_path,
        )

    kept = shop.state.read_bytes()
    try:
        found = edited(shop, ["tags"], plan)
    finally:
        shop.state.write_bytes(kept)
    assert '"warehouse"."shop"."fixed"' in found


def test_load__trusts_no_state_of_another_version(shop: Shop, tmp_path: Path) -> None:
    def load() -> set[str]:
        context = opened(shop, tmp_path / "cache", load=False)
        adapter = sqlmesh_compat.get_sqlmesh_state_adapter(context)
        adapter.execute("UPDATE sqlmesh._versions SET sqlglot_version = '1.0.0'")
        context.close()
        return optimized(shop, tmp_path / "cache")

    kept = shop.state.read_bytes()
    try:
        found: set[str] = forked(load, tmp_path)
    finally:
        shop.state.write_bytes(kept)
    assert {"shop.orders", "shop.wide", "shop.named"} <= found


def of_case(case: Any, folder: Path) -> tuple[Any, Any]:
    """What the plan of a labelled change says, worked out whole and as in prod."""
    os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "true"
    case.write(folder)
    place, base = (
        ProjectPlace(
            projects=(folder / name,),
            repository=folder / name,
            cache_dir=folder / f"cache-{name}",
            scratch_dir=folder,
            gateway=None,
        )
        for name in ("head", "base")
    )
    try:
        made = base_branch.open_project_on_base_branch(
            place,
            base,
            execution=to_timestamp(UNTIL),
            clock=WorkerPhaseClock(),
            on_spark_start=lambda: None,
        )
    except Exception as error:
        return repr(error), repr(error)
    context = made.context
    plain = told(context, spared=False)
    sqlmesh.core.constants.MAX_FORK_WORKERS = 2
    sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
    shutil.rmtree(place.cache_dir)
    sqlmesh_compat.forget_cached_sqlmesh_snapshots(context)
    with (
        sqlmesh_compat.restore_sqlmesh_registries(),
        sqlmesh_compat.let_sqlmesh_reuse_prod_models(context),
    ):
        context.load()
    return plain, told(context, spared=True)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id, marks=[] if number % EVERY == 0 else [pytest.mark.night])
        for number, case in enumerate(CASES)
    ],
)
def test_plan__is_the_same_on_labelled_changes(case: Any, tmp_path: Path) -> None:
    plain, spared = forked(lambda: of_case(case, tmp_path / "case"), tmp_path)
    assert spared == plain
