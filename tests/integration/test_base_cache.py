"""What the default branch's run noted of files gives the plan that loading them gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlmesh.core.constants

from ci_bot.protocol.review_inputs import BaseCache, KnownFile
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.sqlmesh_compat.skipped_work import UnparsedSqlmeshQuery
from tests import nights
from tests.integration.test_reuse_of_prod_snapshots import (
    EDITS,
    MORE,
    edited,
    opened,
    promoted,
    told,
)
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.security.forked import forked

# Files that may read beyond themselves, and those of other kinds; these are loaded as ever.
NEVER = {
    "models/coded.sql",
    "models/valued.sql",
    "models/templated.sql",
    "models/statement.sql",
    "models/dated.sql",
    "models/named_by_macro.sql",
}
AUDITED = {
    "models/audited.sql": "MODEL (name shop.audited, kind FULL, audits (positive, "
    "not_null(columns := (order_id))));\n\nSELECT o.order_id, o.amount FROM shop.orders AS o",
    "audits/positive.sql": "AUDIT (name positive);\n\nSELECT * FROM @this_model WHERE amount < 0",
    "models/statement.sql": "MODEL (name shop.statement, kind FULL);\n\nSET threads = 1;\n\n"
    "SELECT 1 AS one;",
    "models/dated.sql": "MODEL (name shop.dated, kind FULL);\n\n"
    "SELECT @IF(@gateway = 'duck', 1, 2) AS one",
    "models/named_by_macro.sql": "MODEL (name @IF(TRUE, shop.by_macro, shop.other), kind FULL);\n\n"
    "SELECT 1 AS one",
}
MORE_EDITS = {
    "audit": ("audits/positive.sql", "amount < 0", "amount < 1"),
    "name of an audit": ("audits/positive.sql", "positive", "negative"),
    "only a space": ("models/orders.sql", "SELECT\n", "SELECT \n"),
}
EVERY_EDIT = {**EDITS, **MORE_EDITS}
BY_DAY = ("type", "comment", "variable", "default", "macro", "audit", "dialect", "only a space")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    root = tmp_path_factory.mktemp("base_cache")
    shop = write_duck_shop(root)
    for name, text in {**MORE, **AUDITED}.items():
        shop.write(name, text)
    config = shop.project / "config.yaml"
    config.write_text(config.read_text("utf-8") + "\nvariables:\n  much: 1\n", encoding="utf-8")
    forked(lambda: promoted(shop), root)
    return shop


@pytest.fixture(scope="module")
def known(shop: Shop) -> list[KnownFile]:
    found: list[KnownFile] = forked(lambda: noted(shop, shop.root / "noted"), shop.root)
    return found


def noted(shop: Shop, cache: Path) -> list[KnownFile]:
    """What a run on the default branch notes."""
    sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
    context = opened(shop, cache, load=False)
    try:
        with (
            sqlmesh_compat.note_files_that_sqlmesh_loads() as found,
            sqlmesh_compat.let_sqlmesh_reuse_prod_models(context),
        ):
            context.load()
        return sqlmesh_compat.list_known_files_of_sqlmesh(context, found, shop.project)
    finally:
        context.close()


def load(shop: Shop, cache: Path, known: Sequence[KnownFile] | None) -> tuple[Any, set[str]]:
    """What a plan says, and the files that were not parsed to load their models."""
    sqlmesh.core.constants.MAX_FORK_WORKERS = 1
    files = {file.path: file for file in known or ()}
    if known is not None:
        sqlmesh_compat.skip_sqlmesh_cache_writes(loaded_again=False)
    context = opened(shop, cache, load=False)
    try:
        with (
            nullcontext()
            if known is None
            else sqlmesh_compat.let_sqlmesh_reuse_prod_models(
                context,
                lambda stored: sqlmesh_compat.load_known_files_into_sqlmesh(
                    files, stored, shop.project
                ),
            )
        ):
            context.load()
        taken = {
            model._path.relative_to(shop.project).as_posix()
            for model in context.models.values()
            if isinstance(getattr(model, "query_", None), UnparsedSqlmeshQuery)
        }
        return told(context, spared=known is not None), taken
    except Exception as error:
        return repr(error), set()
    finally:
        context.close()


def both(shop: Shop, scratch: Path, known: Sequence[KnownFile]) -> tuple[Any, set[str]]:
    """What is told, with what is known and without; what was taken."""

    def of(files: Sequence[KnownFile] | None) -> Any:
        with TemporaryDirectory(dir=scratch) as cache:
            return forked(lambda: load(shop, Path(cache), files), scratch)

    plain, _ = of(None)
    found, taken = of(known)
    assert found == plain
    return plain, taken


def edited_also(shop: Shop, names: list[str], then: Any) -> Any:
    kept = {name: EDITS.get(name) for name in names}
    EDITS.update({name: EVERY_EDIT[name] for name in names})
    try:
        return edited(shop, names, then)
    finally:
        for name, before in kept.items():
            if before is None:
                del EDITS[name]


def test_noted__is_what_its_file_alone_decides(known: list[KnownFile]) -> None:
    paths = {file.path for file in known}
    assert {"models/orders.sql", "models/wide.sql", "models/audited.sql"} <= paths
    assert not paths & NEVER
    assert all(path.endswith(".sql") for path in paths)


def test_plan__without_an_edit_is_the_same_and_parses_nothing_known(
    shop: Shop, tmp_path: Path, known: list[KnownFile]
) -> None:
    _, taken = both(shop, tmp_path, known)
    assert taken == {file.path for file in known}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", nights.cases(EVERY_EDIT, by_day=BY_DAY))
def test_plan__is_the_same_after_an_edit(
    shop: Shop, tmp_path: Path, known: list[KnownFile], name: tuple[str, str, str]
) -> None:
    (key,) = (key for key, edit in EVERY_EDIT.items() if edit == name)
    _, taken = edited_also(shop, [key], lambda: both(shop, tmp_path, known))
    assert name[0] not in taken
    if name[0].startswith(("config", "macros", "audits")):
        assert not taken, "what is around all files has changed"


@pytest.mark.night
def test_plan__is_the_same_over_a_history_of_200_commits(
    shop: Shop, tmp_path: Path, known: list[KnownFile]
) -> None:
    chance = random.Random(200)
    for _ in range(200):
        names = chance.sample(sorted(EDITS), chance.randint(1, 3))
        edited(shop, names, lambda: both(shop, tmp_path, known))


@pytest.mark.night
def test_plan__is_the_same_over_a_history_of_three_commits(
    shop: Shop, tmp_path: Path, known: list[KnownFile]
) -> None:
    chance = random.Random(3)
    for _ in range(3):
        names = chance.sample(sorted(EDITS), 2)
        edited(shop, names, lambda: both(shop, tmp_path, known))


FORGED = {
    "another file's content": {"content": "0" * 64},
    "another record": {"record": "0" * 64},
    "another model": {"model": '"warehouse"."shop"."wide"'},
    "a model that is none": {"model": '"warehouse"."shop"."nobody"'},
    "a file that is not there": {"path": "models/nowhere.sql"},
    "a path that leaves": {"path": "../models/orders.sql"},
}


@pytest.mark.night
@pytest.mark.parametrize("change", nights.cases(FORGED, by_day=["another record", "another model"]))
def test_plan__takes_nothing_that_does_not_fit(
    shop: Shop, tmp_path: Path, known: list[KnownFile], change: dict[str, Any]
) -> None:
    (orders,) = (file for file in known if file.path == "models/orders.sql")
    _, taken = both(shop, tmp_path, [orders.model_copy(update=change)])
    assert not taken


@pytest.mark.night
def test_plan__takes_nothing_once_prod_has_another_record(
    shop: Shop, tmp_path: Path, known: list[KnownFile]
) -> None:
    def later() -> None:
        context = opened(shop, tmp_path / "later", load=False)
        sqlmesh_compat.get_sqlmesh_state_adapter(context).execute(
            "UPDATE sqlmesh._snapshots SET snapshot = snapshot || ' '"
        )
        context.close()

    kept = shop.state.read_bytes()
    try:
        forked(later, tmp_path)
        _, taken = both(shop, tmp_path, known)
    finally:
        shop.state.write_bytes(kept)
    assert not taken


def test_document__holds_no_text_of_the_project(known: list[KnownFile]) -> None:
    text = BaseCache(files=known, models=len(known)).to_json()
    assert "SELECT" not in text.upper()
    assert BaseCache.model_validate_json(text).files == known
