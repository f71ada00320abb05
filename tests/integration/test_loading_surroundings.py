"""What a project finds around it while it is loaded: its modules, its files, its own tree.

Each test changes something beside a model in a pull request. The review must see the head's copy
for the head and the base's copy for the base; else the change would not show, or a change would
show where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ci_bot.errors import BadInput
from ci_bot.protocol.review_report import Report
from tests.projects.history import CONFIG, Repository, sql_model
from tests.worker import Client, reviewed_on_base

ROOT = Path(__file__).parents[2]
README = {"README.md": "changed\n"}
# A Python model whose columns and body come from elsewhere.
MODEL = """\
{imports}
from sqlmesh import model
from sqlglot import exp


@model("shop.rates", kind="FULL", is_sql=True, columns={columns})
def entry(evaluator):
    return exp.select(exp.cast(exp.Literal.number({value}), "int").as_("rate"))
"""
PYTHON = MODEL.format(imports="from rates9 import RATE", columns='{"rate": "int"}', value="RATE")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    found = Repository(tmp_path / "checkout")
    monkeypatch.chdir(found.root)
    return found


def changed(report: Report) -> dict[str, str]:
    return {change.model: change.change for change in report.changes}


SHARED = """\
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))
from sqlmesh.core.config import Config, GatewayConfig, ModelDefaultsConfig
from sqlmesh.core.config import DuckDBConnectionConfig

config = Config(
    gateways={"main": GatewayConfig(connection=DuckDBConnectionConfig())},
    model_defaults=ModelDefaultsConfig(dialect="duckdb", start="2024-01-01"),
)
"""


@pytest.mark.night
def test_module__outside_the_project_that_the_head_changes__is_really_the_head_s(
    repository: Repository,
) -> None:
    # In one process the base's module would stay under its name, and its directory in front.
    base = {
        "analytics/config.py": SHARED,
        "analytics/models/rates.py": PYTHON,
        "shared/rates9.py": "RATE = 1\n",
    }
    report = reviewed_on_base(
        repository, base, {"shared/rates9.py": "RATE = 2\n"}, projects=("analytics",)
    )
    assert changed(report) == {"shop.rates": "direct"}
    assert changed(reviewed_on_base(repository, {}, README, projects=("analytics",))) == {}


PLACED = """\
import os
from pathlib import Path

from sqlmesh.core.config import Config, GatewayConfig, ModelDefaultsConfig
from sqlmesh.core.config import DuckDBConnectionConfig

config = Config(
    gateways={"main": GatewayConfig(connection=DuckDBConnectionConfig())},
    model_defaults=ModelDefaultsConfig(dialect="duckdb", start="2024-01-01"),
    variables={
        "here": os.path.abspath(".").lstrip("/"),
        "files": {"rates": str(Path(__file__).resolve().parent / "rates")},
    },
)
"""
PLACED_MODELS = {
    "models/a.sql": "MODEL (name shop.a, kind FULL);\nSELECT @here AS here",
    "models/b.sql": "MODEL (name shop.b, kind FULL);\n"
    "JINJA_QUERY_BEGIN; SELECT '{{ var('here') }}' AS here, '{{ place() }}' AS place; JINJA_END;",
    "macros/place.sql": "{% macro place() %}{{ var('files').rates }}{% endmacro %}",
    "models/c.py": """\
from pathlib import Path

from sqlmesh import model

HERE = str(Path(__file__).parent)


@model("shop.c", kind="FULL", columns={"here": "text"})
def entry(context, **kwargs):
    import pandas as pd

    return pd.DataFrame({"here": [HERE]})
""",
    "audits/e.sql": "AUDIT (name here_is_here, standalone true);\n"
    "SELECT * FROM shop.a WHERE here <> @here",
}


def test_place__of_the_checkout_in_variables_and_modules__is_no_change(
    repository: Repository,
) -> None:
    """The base branch is another directory; only that differs."""
    base = {"config.py": PLACED, **PLACED_MODELS}
    report = reviewed_on_base(repository, base, README)
    assert changed(report) == {}
    edited = PLACED_MODELS["models/a.sql"].replace("AS here", "AS there")
    report = reviewed_on_base(repository, {}, {"models/a.sql": edited})
    assert changed(report) == {"shop.a": "direct", "here_is_here": "indirect"}


CUSTOM = """\
from sqlmesh import CustomKind, CustomMaterialization
from pydantic import model_validator


class Kind(CustomKind):
    @model_validator(mode="after")
    def check(self):
        if {condition}:
            raise ValueError("the property `fine` is needed")
        return self


class Own(CustomMaterialization[Kind]):
    NAME = "own"

    def insert(self, table_name, query_or_df, model, is_first_insert, **kwargs):
        pass
"""


def test_custom_materialization__that_the_head_changes__is_really_the_head_s(
    repository: Repository,
) -> None:
    # SQLMesh remembers the classes of a process by their name.
    kind = "MODEL (name shop.own, kind CUSTOM (materialization 'own'));\n\nSELECT 1 AS one\n"
    base = {
        "config.yaml": CONFIG,
        "materializations/own.py": CUSTOM.format(condition="False"),
        "models/own.sql": kind,
    }
    commits = repository.pull_request(
        base, {"materializations/own.py": CUSTOM.format(condition="True")}
    )
    report: Report = Client(repository.root).review("pr_7", commits=commits, baseline="base-branch")
    assert report.failure is not None
    assert "`fine` is needed" in report.failure.message


RELATIVE = MODEL.format(
    imports="from pathlib import Path\n\nRATE = int(Path('./models/rate.txt').read_text())\n",
    columns='{"rate": "int"}',
    value="RATE",
)


@pytest.mark.night
def test_relative_path__in_the_project__is_each_tree_s_own_copy(repository: Repository) -> None:
    base = {"config.yaml": CONFIG, "models/rates.py": RELATIVE, "models/rate.txt": "1\n"}
    report = reviewed_on_base(repository, base, {"models/rate.txt": "2\n"})
    assert changed(report) == {"shop.rates": "direct"}
    assert changed(reviewed_on_base(repository, {}, README)) == {}


@pytest.mark.night
def test_relative_path__from_the_root_of_the_checkout__is_each_tree_s_own_copy(
    repository: Repository,
) -> None:
    # As with `sqlmesh -p analytics`, which starts nowhere but where the user is.
    base = {
        "analytics/config.yaml": CONFIG,
        "analytics/models/rates.py": RELATIVE.replace("./models", "analytics/models"),
        "analytics/models/rate.txt": "1\n",
    }
    report = reviewed_on_base(
        repository, base, {"analytics/models/rate.txt": "2\n"}, projects=("analytics",)
    )
    assert changed(report) == {"shop.rates": "direct"}


@pytest.mark.night
def test_relative_path__of_several_projects__begins_at_the_root(repository: Repository) -> None:
    base = {
        "a/config.yaml": f"project: a\n{CONFIG}",
        "a/models/rates.py": RELATIVE.replace("./models", "a/models"),
        "a/models/rate.txt": "1\n",
        "b/config.yaml": f"project: b\n{CONFIG}",
        "b/models/b.sql": sql_model("b"),
    }
    report = reviewed_on_base(repository, base, {"a/models/rate.txt": "2\n"}, projects=("a", "b"))
    assert changed(report) == {"shop.rates": "direct"}


@pytest.mark.night
def test_python_path__finds_modules_beside_the_models_of_each_tree(repository: Repository) -> None:
    base = {
        "config.yaml": CONFIG,
        "models/rates.py": PYTHON,
        "models/parts/rates9.py": "RATE = 1\n",
    }
    searched = {"python_path": ("models/parts",)}
    report = reviewed_on_base(
        repository, base, {"models/parts/rates9.py": "RATE = 2\n"}, **searched
    )
    assert changed(report) == {"shop.rates": "direct"}
    assert changed(reviewed_on_base(repository, {}, README, **searched)) == {}


@pytest.mark.night
def test_python_path__reaches_the_processes_that_load_models(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    macro = (
        "from sqlmesh import macro\n\n\n@macro()\ndef rate(evaluator):\n"
        "    import rates9\n\n    return rates9.RATE\n"
    )
    base = {
        "config.yaml": CONFIG,
        "macros/rate.py": macro,
        "lib/rates9.py": "RATE = 1\n",
        **{f"models/m{n}.sql": sql_model(f"m{n}", "SELECT @rate() AS rate") for n in range(3)},
    }
    monkeypatch.setenv("MAX_FORK_WORKERS", "2")
    report = reviewed_on_base(
        repository,
        base,
        {"models/m9.sql": sql_model("m9", "SELECT @rate() AS rate")},
        python_path=("lib",),
    )
    assert changed(report) == {"shop.m9": "added"}


@pytest.mark.night
def test_python_path__that_the_base_lacks__is_no_failure_of_the_base(
    repository: Repository,
) -> None:
    base = {"config.yaml": CONFIG, "models/good.sql": sql_model("good")}
    head: dict[str, str | None] = {"models/rates.py": PYTHON, "lib/rates9.py": "RATE = 1\n"}
    report = reviewed_on_base(repository, base, head, python_path=("lib",))
    assert changed(report) == {"shop.rates": "added"}


@pytest.mark.night
def test_python_path__that_is_not_set__is_named_where_a_module_is_missing(
    repository: Repository,
) -> None:
    base = {"config.yaml": CONFIG, "models/good.sql": sql_model("good")}
    head = {"models/rates.py": PYTHON, "models/parts/rates9.py": "RATE = 1\n"}
    commits = repository.pull_request(base, head)
    report: Report = Client(repository.root).review("pr_7", commits=commits, baseline="base-branch")
    assert report.failure is not None
    assert report.failure.message == (
        "`models/rates.py` imports `rates9`, which is not on the search path."
    )
    assert "`models/parts`" in str(report.failure.hint)
    assert "`python-path`" in str(report.failure.hint)


@pytest.mark.night
def test_python_path__of_the_command_line__is_relative_to_where_the_user_is(
    repository: Repository,
) -> None:
    base = {
        "config.yaml": CONFIG,
        "models/rates.py": PYTHON,
        "models/parts/rates9.py": "RATE = 1\n",
    }
    commits = repository.pull_request(base, {"models/parts/rates9.py": "RATE = 2\n"})
    review = [sys.executable, "-m", "ci_bot", "review", "--project", "..", "--format", "json"]
    options = ["--python-path", "parts", "--baseline", "base-branch", "--base-ref"]
    done = subprocess.run(
        [*review, *options, str(commits.base)],
        cwd=repository.root / "models",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    report = Report.model_validate_json(done.stdout)
    assert changed(report) == {"shop.rates": "direct"}
    # From the root of the checkout, as the command that makes the same review.
    assert report.project.python_path == ["models/parts"]


@pytest.mark.parametrize("outside", ["..", "/etc", "lib/../../x"])
def test_python_path__outside_of_the_checkout__is_bad_input(
    repository: Repository, outside: str
) -> None:
    repository.commit({"config.yaml": CONFIG})
    with pytest.raises(BadInput) as refused:
        Client(repository.root, python_path=(outside,)).review("pr_7")
    assert refused.value.exit_code == 2
    assert f"`{outside}`" in refused.value.message
    assert "`python-path`" in str(refused.value.hint)
