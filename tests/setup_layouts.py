"""Repositories as teams have them, for `ci-bot init`: each is a function that gives its files."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ci_bot.bot.cli.setup.setup_command import SetupOptions, set_up_repository
from ci_bot.host import make_process_machine

ROOT = Path(__file__).resolve().parents[1]
RELEASE = f"acme/sqlmesh-plan-review@{'ab' * 20} # v1.2.3"
NEXT_RELEASE = f"acme/sqlmesh-plan-review@{'cd' * 20} # v1.3.0"

DUCKDB = """\
gateways:
  duckdb:
    connection:
      type: duckdb
      database: db.db
default_gateway: duckdb
model_defaults:
  dialect: duckdb
  start: 2024-01-01
"""
SPARK_ON_POSTGRES = """\
default_gateway: spark
gateways:
  spark:
    connection: {type: spark, config: {spark.hadoop.token: "{{ env_var('LAKE_TOKEN') }}"}}
    state_connection:
      type: postgres
      host: {{ env_var('PG_HOST') }}
      port: {{ env_var('PG_PORT', 5432) }}
      user: {{ env_var('PG_USER') }}
      password: {{ env_var("PG_PASSWORD") }}
      database: sqlmesh
model_defaults: {dialect: spark}
"""
IN_PYTHON = """\
import os

from sqlmesh.core.config import (
    Config, GatewayConfig, ModelDefaultsConfig, PostgresConnectionConfig, SparkConnectionConfig,
)
from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig, MergeMethod

state = PostgresConnectionConfig(
    host=os.environ["DB_HOST"],
    port=int(os.getenv("DB_PORT", "5432")),
    user=os.environ["DB_USER"],
    password=os.environ["DB_PASSWORD"],
    database="sqlmesh",
)
config = Config(
    default_gateway="prod",
    gateways={
        "prod": GatewayConfig(
            connection=SparkConnectionConfig(config={"spark.token": os.environ["LAKE_TOKEN"]}),
            state_connection=state,
        ),
        "local": GatewayConfig(connection=SparkConnectionConfig(), state_connection=state),
    },
    cicd_bot=GithubCICDBotConfig(merge_method=MergeMethod.SQUASH, enable_deploy_command=True),
    model_defaults=ModelDefaultsConfig(dialect=os.environ.get("DIALECT") or "spark"),
)
"""
OLD_BOT = """\
name: SQLMesh Bot
on: [pull_request, issue_comment]
jobs:
  sqlmesh:
    runs-on: ubuntu-latest
    steps:
      - run: sqlmesh_cicd -p ${{ github.workspace }} github --token ${{ secrets.GITHUB_TOKEN }} run-all
"""
MODEL = "MODEL (name shop.orders, kind FULL);\nSELECT 1 AS id\n"


def locked(package: str, version: str) -> str:
    """A package as poetry.lock, uv.lock and pdm.lock have it, after another one."""
    return (
        '[[package]]\nname = "sqlglot"\nversion = "27.1.0"\n\n'
        f'[[package]]\nname = "{package}"\nversion = "{version}"\ndescription = "x"\n\n'
        '[[package]]\nname = "sqlmesh-extras"\nversion = "9.9.9"\n'
    )


def _example(name: str, below: str) -> dict[str, str]:
    directory = ROOT / "examples" / name
    return {
        f"{below}{path.relative_to(directory)}": path.read_text("utf-8")
        for path in directory.rglob("*")
        if path.is_file() and path.suffix in (".yaml", ".sql", ".csv", ".py")
    }


LAYOUTS: dict[str, Callable[[], dict[str, str]]] = {
    "company": lambda: _example("company", ""),
    "flights": lambda: _example("flights/project", "warehouse/"),
    "duckdb": lambda: {"config.yaml": DUCKDB, "models/orders.sql": MODEL},
    "several": lambda: {
        "sales/config.yaml": SPARK_ON_POSTGRES,
        "finance/config.yml": SPARK_ON_POSTGRES,
        "docs/config.yaml": "site_name: ours\n",
    },
    "poetry": lambda: {
        "config.yaml": SPARK_ON_POSTGRES,
        "pyproject.toml": '[tool.poetry.dependencies]\nsqlmesh = "^0.230"\n',
        "poetry.lock": locked("sqlmesh", "0.230.1"),
    },
    "uv": lambda: {
        "warehouse/config.yaml": SPARK_ON_POSTGRES,
        "pyproject.toml": '[project]\ndependencies = ["sqlmesh[postgres]>=0.228", "pyspark"]\n',
        "uv.lock": locked("sqlmesh", "0.236.4") + locked("pyspark", "4.0.1"),
        ".python-version": "3.12.4\n",
    },
    "pdm": lambda: {
        "config.yaml": SPARK_ON_POSTGRES,
        "pdm.lock": locked("sqlmesh", "0.227.1"),
    },
    "pip": lambda: {
        "config.yaml": SPARK_ON_POSTGRES,
        "requirements.txt": "sqlmesh[postgres]==0.231.0 \\\n    --hash=sha256:00\npyspark==3.5.9\n",
    },
    "dbt": lambda: {
        "sqlmesh.yaml": "gateways:\n  prod:\n    state_connection:\n      type: postgres\n"
        "      password: \"{{ env_var('STATE_PASSWORD') }}\"\n",
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "profiles.yml": "shop:\n  target: prod\n  outputs:\n    prod:\n      type: spark\n"
        "      host: \"{{ env_var('DBT_HOST') }}\"\n      token: \"{{ env_var('DBT_TOKEN') }}\"\n",
    },
    "python": lambda: {"config.py": IN_PYTHON},
    "old bot": lambda: {
        "config.yaml": SPARK_ON_POSTGRES + "cicd_bot:\n  type: github\n  merge_method: squash\n",
        ".github/workflows/sqlmesh.yml": OLD_BOT,
    },
}


@dataclass
class Clone:
    """A repository on a laptop."""

    root: Path
    text: str = ""

    def init(
        self,
        *,
        level: str | None = None,
        projects: tuple[str, ...] = (),
        action: str | None = RELEASE,
        directory: str = ".",
        **options: object,
    ) -> str:
        """`ci-bot init` there; what it prints."""
        out = io.StringIO()
        machine = replace(make_process_machine(), directory=self.root / directory, out=out)
        asked = SetupOptions(projects=projects, level=level, action=action, **options)
        assert set_up_repository(machine, asked) == 0
        return out.getvalue()

    def files(self) -> dict[str, str]:
        """All files but git's, with their texts."""
        return {
            path.relative_to(self.root).as_posix(): path.read_text("utf-8")
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.root).parts
        }

    def workflow(self, name: str) -> str:
        return (self.root / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")


def clone(root: Path, files: Mapping[str, str] | str) -> Clone:
    """A clone with these files, or with those of a layout."""
    (root / ".git" / "refs" / "remotes" / "origin").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/work\n")
    head = root / ".git" / "refs" / "remotes" / "origin" / "HEAD"
    head.write_text("ref: refs/remotes/origin/trunk\n")
    for path, text in (LAYOUTS[files]() if isinstance(files, str) else files).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return Clone(root)
