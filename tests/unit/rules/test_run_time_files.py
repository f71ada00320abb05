"""Files that a model reads while it runs: SQLMesh sees none of their changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlmesh.core.model import Model, create_python_model
from sqlmesh.utils.metaprogramming import Executable, ExecutableKind

from ci_bot.protocol.plan import Finding
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.rules import RuleInputs
from tests.unit.rules.world import ROOT, files, models, seen

CODE = """def execute(context, start, end, execution_time, **kwargs):
    return read('{file}')
"""


def make_python_model(code: str) -> Model:
    return create_python_model(
        "mart.targets",
        "execute",
        {"execute": Executable(payload=code, kind=ExecutableKind.DEFINITION)},
        columns={"target": "int"},
        dialect="spark",
        default_catalog="spark_catalog",
    )


def find_changes(
    path: str, before: Model, after: Model, *, opened: tuple[str, ...] = (), gone: bool = False
) -> list[Finding]:
    inputs: RuleInputs = files({path: "1"}, {} if gone else {path: "2"})
    sides = {"before": {before.fqn: before}, "after": {after.fqn: after}}
    told = replace(
        inputs,
        **sides,
        opened=frozenset(str(ROOT / name) for name in opened),
        names=MessageNames("spark_catalog", "spark"),
    )
    return seen(told, "changed-in-runs")


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("data/targets.json", "data/targets.json"),
        ("data/targets.json", "targets.json"),
        ("conf/limits.yaml", "/opt/project/conf/limits.yaml"),
        ("sql/report.sql", "./sql/report.sql"),
        ("lib/fast.py", "lib/fast.py"),
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_file__that_an_unchanged_model_names__is_high(path: str, named: str, gone: bool) -> None:
    model = make_python_model(CODE.format(file=named))
    (finding,) = find_changes(path, model, model, gone=gone)
    assert (finding.severity, finding.model, finding.path) == ("high", "mart.targets", path)
    assert f"`{path}`" in finding.evidence


def test_file__that_a_query_names__is_high() -> None:
    text = "MODEL (name mart.targets, kind FULL); SELECT t.* FROM csv.`data/targets.csv` AS t"
    model = models({"m.sql": text}, external={})['"spark_catalog"."mart"."targets"']
    assert find_changes("data/targets.csv", model, model)


@pytest.mark.parametrize(
    ("path", "named", "opened"),
    [
        ("data/targets.json", "targets.json", ("data/targets.json",)),
        ("data/targets.json", "old_targets.json", ()),
        ("data/targets.json", "targets.jsonl", ()),
        ("data/targets.json", "targets", ()),
        ("docs/targets.md", "docs/targets.md", ()),
        ("Makefile", "Makefile", ()),
    ],
)
def test_file__that_the_load_reads_or_nobody_names__is_quiet(
    path: str, named: str, opened: tuple[str, ...]
) -> None:
    model = make_python_model(CODE.format(file=named))
    assert not find_changes(path, model, model, opened=opened)


def test_file__of_a_model_that_is_built_again__is_quiet() -> None:
    before, after = (
        make_python_model(CODE.format(file="data/targets.json") + extra)
        for extra in ("", "    # again\n")
    )
    assert before.data_hash != after.data_hash
    assert not find_changes("data/targets.json", before, after)


def test_file__that_a_comment_names__is_quiet() -> None:
    text = "MODEL (name mart.t, kind FULL); SELECT 1 AS a -- as in data/targets.csv\n"
    model = models({"m.sql": text}, external={})['"spark_catalog"."mart"."t"']
    assert not find_changes("data/targets.csv", model, model)


LISTING = "def execute(context, **kwargs):\n    return [open(one) for one in {found}]\n"


@pytest.mark.parametrize(
    "found",
    [
        "Path('data/bonus').glob('*.json')",
        "Path('data').rglob('*.json')",
        "(Path('data') / 'bonus').iterdir()",
        "glob.glob('data/bonus/*')",
        'iglob("/opt/project/data/bonus/*.json")',
        "os.listdir('data/bonus')",
        "os.scandir('data/bonus')",
        "os.walk('data')",
        "resources.files('data.more').joinpath('bonus').iterdir()",
        "context.spark.read.json('data/bonus')",
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_file__of_a_directory_that_the_code_lists__is_high(found: str, gone: bool) -> None:
    model = make_python_model(LISTING.format(found=found))
    (finding,) = find_changes("data/bonus/2026.json", model, model, gone=gone)
    assert (finding.severity, finding.model) == ("high", "mart.targets")
    assert "lists the directory of `data/bonus/2026.json`" in finding.evidence


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("data/bonus/2026.csv", "Path('data/bonus').glob('*.json')"),
        ("data/bonus/README.md", "Path('data/bonus').iterdir()"),
        ("data/malus/2026.json", "Path('data/bonus').iterdir()"),
        ("data/bonus/2026.json", "['data/bonus']"),
        ("data/bonus/2026.json", "Path(BONUS).iterdir()"),
    ],
)
def test_file__that_the_listing_leaves_out__is_quiet(path: str, found: str) -> None:
    model = make_python_model(LISTING.format(found=found))
    assert not find_changes(path, model, model)


def test_file__without_a_suffix_in_a_listed_directory__is_high() -> None:
    model = make_python_model(LISTING.format(found="os.listdir('data/bonus')"))
    assert find_changes("data/bonus/2026", model, model)
