"""The examples on the rules' pages, all in one pull request, which the real worker reviews.

What `tests/unit/rules/test_pages.py` asks of each rule alone is asked here of the whole way: git,
both loads, the plan, the rules, the answer, the decision.
"""

from __future__ import annotations

import re

import pytest

from ci_bot.bot.worker_client.review_subject import RequestedReviewCommits
from ci_bot.protocol.plan_identity import GivenFlags
from ci_bot.protocol.review_report import Report
from tests.github_standin.local_git import LocalGit
from tests.projects import Shop
from tests.unit.rules.test_pages import (
    CHANGE_RULES,
    MODEL_RULES,
    WITHOUT_DEFAULT_START,
    as_files,
    section,
)
from tests.unit.rules.world import EXTERNAL
from tests.worker import Client

pytestmark = pytest.mark.slow

CONFIG = """\
gateways:
  duck:
    connection: {{type: duckdb, database: {root}/warehouse.duckdb}}
    state_connection: {{type: duckdb, database: {root}/state.duckdb}}
  lake:
    connection: {{type: duckdb, database: {root}/lake.duckdb}}
default_gateway: duck
model_defaults: {{dialect: spark, start: 2023-01-01}}
variables: {{}}
"""
SIGNAL = """\
from sqlmesh import signal


@signal()
def arrived(batch, source=""):
    return True
"""
# They speak of Spark, and these models are DuckDB's: tests/unit/rules/test_merging.py and
# tests/integration/test_settings_on_spark.py have what they say there.
OF_SPARK = {"merge-unsupported", "session-setting"}
PAGES = [
    rule
    for rule in (*MODEL_RULES, *CHANGE_RULES)
    if rule not in WITHOUT_DEFAULT_START and rule not in OF_SPARK
]
_SCHEMA = re.compile(r"\b(mart|stg)\.(?=\w)")


def named(rule: str) -> str:
    return rule.replace("-", "_").lower()


def own_schemas(rule: str, text: str) -> str:
    """The same with schemas that no other example has."""
    return _SCHEMA.sub(rf"\1__{named(rule)}.", text)


def write(shop: Shop, rule: str, block: str) -> None:
    for path, text in as_files(block).items():
        name = path.removeprefix("models/")
        shop.write(f"models/{named(rule)}/{name}", own_schemas(rule, text))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    root = tmp_path_factory.mktemp("pages")
    shop = Shop(root)
    shop.write("config.yaml", CONFIG.format(root=root))
    shop.write("signals/__init__.py", SIGNAL)
    tables = [
        f"- name: {name}\n  columns:\n"
        + "".join(f"    {column}: {kind}\n" for column, kind in columns.items())
        for name, columns in EXTERNAL.items()
    ]
    shop.write("external_models.yaml", "".join(tables))
    for rule in CHANGE_RULES:
        write(shop, rule, section(rule, "## Fires")[0])
    git = LocalGit(shop.project)
    git.commit({}, "What there is")
    base = git("rev-parse", "HEAD")
    for rule in CHANGE_RULES:
        write(shop, rule, section(rule, "## Fires")[1])
    for rule in PAGES:
        if rule in MODEL_RULES:
            write(shop, rule, section(rule, "## Fires")[0])
    git.commit({}, "What the pages warn of")
    commits = RequestedReviewCommits(base=base, head=git("rev-parse", "HEAD"))
    # Without it SQLMesh would refuse the whole plan for the sake of one example.
    flags = GivenFlags(allow_destructive=["stg__forward_only_destructive.*"])
    return Client(shop.project).review("pr_7", commits=commits, baseline="base-branch", flags=flags)


@pytest.mark.parametrize("rule", PAGES)
def test_page__its_example_is_told_in_a_review(rule: str, report: Report) -> None:
    assert report.failure is None, report.failure
    schemas = (f"mart__{named(rule)}.", f"stg__{named(rule)}.")
    told = [r for r in report.risks if r.rule == rule]
    assert any(
        any(schema in f"{risk.model} {risk.evidence}" for schema in schemas) for risk in told
    ), [(r.rule, r.model, r.evidence[:80]) for r in report.risks if schemas[0] in str(r.model)]
