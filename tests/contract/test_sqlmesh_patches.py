"""docs/sqlmesh-patches.md has all that reaches into SQLMesh, and nothing else."""

from __future__ import annotations

import re

import pytest
import sqlmesh

from ci_bot.protocol.supported_versions import BEYOND, OLDEST, parse_release
from tests.sqlmesh_patches import (
    COMPAT,
    PAGE,
    ROOT,
    Patch,
    find_lost_overrides,
    find_reaches,
    list_modules,
    read_patches,
    render_page,
    resolve_internals,
)

PATCHES = read_patches(PAGE.read_text("utf-8"))


def missing_from(patches: list[Patch], path: str, source: str) -> list[str]:
    """What a module reaches for and no section about it names."""
    known = {name for patch in patches if path in patch.modules for name in patch.last_words}
    found = find_reaches(source)
    return [f"{path}:{line} {name}" for name, line in found.items() if name not in known]


def test_page__names_all_that_the_code_reaches_for() -> None:
    missing = [
        one
        for file in list_modules()
        for one in missing_from(PATCHES, file.relative_to(ROOT).as_posix(), file.read_text("utf-8"))
    ]
    assert missing == []


HEAD = "from sqlmesh.core import loader\nfrom sqlmesh.core.scheduler import Scheduler\n"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("def f(context):\n    return context._mystery", "_mystery"),
        ("loader.load_sql_models = print", "load_sql_models"),
        ("module: Any = loader\nmodule.load_sql_models = print", "load_sql_models"),
        ("del loader.load_sql_models", "load_sql_models"),
        ("setattr(Scheduler, 'run', print)", "run"),
        ("vars(loader)['load_sql_models'] = print", "load_sql_models"),
        ("class Mine(Scheduler):\n    pass", "Scheduler"),
        ("class Mine(Scheduler):\n    def evaluate(self): ...", "evaluate"),
    ],
)
def test_page__of_a_patch_that_it_lacks__is_not_whole(code: str, name: str) -> None:
    path = f"{COMPAT}/planted.py"
    assert [one.rpartition(" ")[2] for one in missing_from(PATCHES, path, HEAD + code)][-1] == name


@pytest.mark.parametrize(
    "code",
    [
        "class Mine:\n    def __init__(self):\n        self._own = 1\ndef f(mine: Mine):\n    return mine._own",
        "def f(context):\n    context.path = loader.load_sql_models",
        "class MineError(loader.ConfigError):\n    pass",
    ],
)
def test_page__needs_no_section_for_what_is_ours_or_public(code: str) -> None:
    assert missing_from(PATCHES, f"{COMPAT}/planted.py", HEAD + code) == []


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.title)
def test_section__speaks_of_code_and_internals_that_are_there(patch: Patch) -> None:
    texts = {path: (ROOT / path).read_text("utf-8") for path in patch.modules}
    for place in patch.places:
        if not place.endswith(".py"):
            module, _, name = place.partition(".")
            assert re.search(
                rf"^(def|class) {name}\b", texts[f"{COMPAT}/{module}.py"], re.MULTILINE
            ), place
    for name in patch.last_words:
        assert any(re.search(rf"\b{name}\b", text) for text in texts.values()), name
    oldest, newest = (parse_release(one) for one in patch.texts["Versions"].split(" to "))
    assert oldest >= OLDEST[:2]
    assert newest < BEYOND
    if oldest <= parse_release(sqlmesh.__version__)[:2] <= newest:
        assert [path for path, known in resolve_internals(patch) if not known] == []
        assert find_lost_overrides(patch, texts) == []


def test_section__of_an_override_that_was_renamed__is_not_right() -> None:
    (patch,) = (one for one in PATCHES if "DAG" in one.last_words)
    (path,) = patch.modules
    source = (ROOT / path).read_text("utf-8")
    renamed = source.replace("def upstream(", "def upstream_of(")
    assert source != renamed
    assert find_lost_overrides(patch, {path: renamed}) == ["sqlmesh.utils.dag.DAG.upstream"]


def test_page__its_table_is_that_of_its_sections() -> None:
    page = PAGE.read_text("utf-8")
    assert render_page(page) == page
    titles = [patch.title for patch in PATCHES]
    assert len(titles) == len(set(titles))
