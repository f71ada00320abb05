"""A state that can be asked and holds no prod of the project: its silence is no knowledge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pytest
from sqlmesh.core.context import Context

from ci_bot.bot.report.model.headline import make_baseline_notice_view
from ci_bot.protocol.review_report import Report
from tests.integration.test_postgres_state import connect, own_database, server
from tests.projects.history import Repository
from tests.worker import Client

__all__ = ["server"]

COUNTS = "MODEL (name shop.counts, kind FULL);\n\nSELECT COUNT(DISTINCT id) AS n FROM shop.ids\n"
IDS = "MODEL (name shop.ids, kind FULL);\n\nSELECT 1 AS id\n"
COUNTED_OTHERWISE: dict[str, str | None] = {
    "models/counts.sql": COUNTS.replace("COUNT(DISTINCT id)", "COUNT(id)")
}
REMOVED: dict[str, str | None] = {"models/counts.sql": None}
A_NOTE: dict[str, str | None] = {"README.md": "The shop.\n"}


def config(state: Path, *, project: str = "") -> str:
    key = f"project: {project}\n" if project else ""
    return f"""\
{key}gateways:
  main:
    connection: {{type: duckdb, database: '{state.with_name("warehouse.duckdb")}'}}
    state_connection: {{type: duckdb, database: '{state}'}}
model_defaults: {{dialect: duckdb, start: 2024-01-01}}
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state.duckdb"


def files(state: Path, *, project: str = "") -> dict[str, str | None]:
    return {
        "config.yaml": config(state, project=project),
        "models/ids.sql": IDS,
        "models/counts.sql": COUNTS,
    }


def plan(root: Path, environment: str, **options: object) -> None:
    context = Context(paths=[str(root)])
    context.plan(environment, auto_apply=True, no_prompts=True, skip_tests=True, **options)
    context.close()


def absent(state: Path) -> None:
    assert not state.exists()


def without_tables(state: Path) -> None:
    duckdb.connect(str(state)).close()


def of_another_schema(state: Path) -> None:
    """As an account sees it that may not look into the schema, or a variable with a typing error."""
    with duckdb.connect(str(state)) as connection:
        connection.execute("CREATE SCHEMA sqlmesh_prod")
        connection.execute("CREATE TABLE sqlmesh_prod._versions (schema_version INT)")


def with_dev_only(state: Path) -> None:
    other = Repository(state.parent / "dev")
    other.commit(files(state))
    plan(other.root, "dev", include_unmodified=True)


def with_production(state: Path) -> None:
    """A team that calls its prod otherwise."""
    other = Repository(state.parent / "production")
    other.commit(files(state))
    plan(other.root, "production", include_unmodified=True)


SILENT = {
    absent: "no table of SQLMesh is there",
    without_tables: "no table of SQLMesh is there",
    of_another_schema: "no table of SQLMesh is there",
    with_dev_only: "it holds the environment 'dev', and no `prod`",
    with_production: "it holds the environment 'production', and no `prod`",
}


@pytest.mark.parametrize("make", SILENT)
@pytest.mark.parametrize(
    ("head", "change", "rule"),
    [
        (COUNTED_OTHERWISE, "direct", "aggregate-changed"),
        (REMOVED, "removed", "R04-model-removed"),
    ],
)
@pytest.mark.by_day(2)
def test_state_without_prod__is_no_knowledge_and_the_base_branch_stands_for_prod(
    tmp_path: Path, state: Path, make: object, head: dict[str, str | None], change: str, rule: str
) -> None:
    make(state)  # type: ignore[operator] # one of SILENT
    repository = Repository(tmp_path / "checkout")
    commits = repository.pull_request(files(state), head)

    client = Client(repository.root)
    report = client.review("pr_7", commits=commits)

    # The state is opened, and planned against is the base branch alone.
    assert [step.phase for step in client.heard.progress if step.phase in {"load", "plan"}] == [
        *("load", "load", "plan")
    ]
    assert (report.baseline, report.decision) == ("base-branch", "review")
    assert change in {c.change for c in report.changes if c.model == "shop.counts"}
    assert rule in {risk.rule for risk in report.risks}
    missing = report.prod_not_found
    assert missing is not None
    assert missing.first_deployment is None
    assert missing.why == SILENT[make]  # type: ignore[index] # one of SILENT
    assert str(state) in missing.state
    assert not report.appliable


def silent_report(tmp_path: Path, state: Path, base: bool, **options: object) -> Report:
    repository = Repository(tmp_path / "checkout")
    commits = repository.pull_request(files(state), COUNTED_OTHERWISE)
    if not base:
        commits = type(commits)(head=commits.head)
    return Client(repository.root).review("pr_7", commits=commits, **options)


def test_state_without_prod__and_without_a_base_is_never_go(tmp_path: Path, state: Path) -> None:
    report = silent_report(tmp_path, state, base=False)

    assert (report.baseline, report.decision) == ("empty", "review")
    (risk,) = (risk for risk in report.risks if risk.rule == "R10-prod-not-found")
    assert risk.severity == "high"
    assert str(state) in risk.evidence


def test_state_without_prod__chosen_by_name_is_a_first_deployment(
    tmp_path: Path, state: Path
) -> None:
    report = silent_report(tmp_path, state, base=True, baseline="state")

    assert (report.baseline, report.decision) == ("empty", "go")
    assert report.prod_not_found is not None
    assert report.prod_not_found.first_deployment == "chosen"


def test_state_without_prod__and_a_base_without_models_is_a_first_deployment(
    tmp_path: Path, state: Path
) -> None:
    repository = Repository(tmp_path / "checkout")
    first = {name: text for name, text in files(state).items() if name != "config.yaml"}
    commits = repository.pull_request({"config.yaml": config(state)}, first)

    report = Client(repository.root).review("pr_7", commits=commits)

    assert (report.baseline, report.decision) == ("empty", "go")
    assert report.prod_not_found is not None
    assert report.prod_not_found.first_deployment == "base-without-models"
    assert not report.appliable


def test_state_without_prod__of_a_base_that_does_not_load_is_never_go(
    tmp_path: Path, state: Path
) -> None:
    repository = Repository(tmp_path / "checkout")
    broken = {**files(state), "models/ids.sql": "MODEL (name shop.ids); SELEC 1"}
    commits = repository.pull_request(broken, {"models/ids.sql": IDS})

    report = Client(repository.root).review("pr_7", commits=commits)

    assert report.decision == "review"
    assert report.prod_not_found is not None
    assert "R01-base-broken" in {risk.rule for risk in report.risks}


def test_state_with_prod__is_compared_with(tmp_path: Path, state: Path) -> None:
    repository = Repository(tmp_path / "checkout")
    base = repository.commit(files(state))
    plan(repository.root, "prod")
    commits = repository.pull_request({}, A_NOTE)

    report = Client(repository.root).review("pr_7", commits=commits)

    assert base
    assert (report.baseline, report.decision) == ("state", "no_changes")
    assert report.prod_not_found is None


@pytest.mark.night
@pytest.mark.parametrize("deployed", [False, True])
def test_prod_of_another_project__says_nothing_of_this_one(
    tmp_path: Path, state: Path, deployed: bool
) -> None:
    other = Repository(tmp_path / "other")
    other.commit(
        {
            "config.yaml": config(state, project="beta"),
            "models/b.sql": "MODEL (name beta.b, kind FULL);\n\nSELECT 1 AS one\n",
        }
    )
    plan(other.root, "prod")
    repository = Repository(tmp_path / "checkout")
    repository.commit(files(state, project="alpha"))
    if deployed:
        plan(repository.root, "prod")
    commits = repository.pull_request({}, COUNTED_OTHERWISE)

    report = Client(repository.root).review("pr_7", commits=commits)

    assert report.decision == "review"
    assert "aggregate-changed" in {risk.rule for risk in report.risks}
    assert (report.prod_not_found is None) is deployed
    if report.prod_not_found is not None:
        assert report.baseline == "base-branch"
        assert "models of other projects only ('beta')" in report.prod_not_found.why


# What an account of PostgreSQL has of the schema that holds the state, and what a review says then.
RIGHTS = {
    "nothing": (),
    "the schema, and none of its tables": ("GRANT USAGE ON SCHEMA sqlmesh TO {account}",),
    "one table": (
        "GRANT USAGE ON SCHEMA sqlmesh TO {account}",
        "GRANT SELECT ON sqlmesh._versions TO {account}",
    ),
}


@pytest.fixture
def postgres_state(server: str, tmp_path: Path) -> Iterator[tuple[Repository, str, str]]:
    """A project whose prod is in a state on PostgreSQL; the name of an account without rights."""
    parts = urlsplit(server)
    account = f"reader_without_rights_{os.getpid()}"
    with own_database(server, "no_rights") as (database, _):
        with closing(connect(server, database)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE ROLE {account} LOGIN PASSWORD 'pw'")
        repository = Repository(tmp_path / "checkout")
        try:
            repository.commit(
                {
                    "config.yaml": f"""\
gateways:
  main:
    connection: {{type: duckdb, database: '{tmp_path / "warehouse.duckdb"}'}}
    state_connection:
      type: postgres
      host: {parts.hostname}
      port: {parts.port}
      user: "{{{{ env_var('STATE_USER', '{parts.username}') }}}}"
      password: "{{{{ env_var('STATE_PASSWORD', '{parts.password}') }}}}"
      database: {database}
  other:
    connection: {{type: duckdb, database: '{tmp_path / "warehouse.duckdb"}'}}
    state_connection: {{type: duckdb, database: '{tmp_path / "other.duckdb"}'}}
default_gateway: main
model_defaults: {{dialect: duckdb, start: 2024-01-01}}
""",
                    "models/ids.sql": IDS,
                    "models/counts.sql": COUNTS,
                }
            )
            plan(repository.root, "prod")
            yield repository, database, account
        finally:
            with closing(connect(server, database)) as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP OWNED BY {account}")
                cursor.execute(f"DROP ROLE {account}")


@pytest.mark.postgres
@pytest.mark.parametrize("head", [COUNTED_OTHERWISE, REMOVED], ids=["changed", "removed"])
@pytest.mark.parametrize("rights", RIGHTS)
@pytest.mark.by_day(1)
def test_state_on_postgres__that_the_account_may_not_read_is_never_go(
    postgres_state: tuple[Repository, str, str],
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    rights: str,
    head: dict[str, str | None],
) -> None:
    repository, database, account = postgres_state
    with closing(connect(server, database)) as connection, connection.cursor() as cursor:
        for statement in RIGHTS[rights]:
            cursor.execute(statement.format(account=account))
    commits = repository.pull_request({}, head)

    monkeypatch.setenv("STATE_USER", account)
    monkeypatch.setenv("STATE_PASSWORD", "pw")
    client = Client(repository.root, worker_env="STATE_USER STATE_PASSWORD")

    report = client.review("pr_7", commits=commits)

    assert (report.baseline, report.decision) == ("base-branch", "review")
    notice = make_baseline_notice_view(report)
    assert notice is not None
    expected = "permission denied for table" if rights == "one table" else "no table of SQLMesh"
    assert expected in notice.render_unmarked()
    assert account not in notice.render_unmarked()


@pytest.mark.night
@pytest.mark.postgres
@pytest.mark.parametrize("head", [COUNTED_OTHERWISE, REMOVED], ids=["changed", "removed"])
def test_gateway__with_another_and_empty_state_is_never_go(
    postgres_state: tuple[Repository, str, str], tmp_path: Path, head: dict[str, str | None]
) -> None:
    repository, _, _ = postgres_state
    commits = repository.pull_request({}, head)
    named = Client(repository.root, gateway="other")

    report = named.review("pr_7", commits=commits)

    assert (report.baseline, report.decision) == ("base-branch", "review")
    notice = make_baseline_notice_view(report)
    assert notice is not None
    assert str(tmp_path / "other.duckdb") in notice.render_unmarked()
    assert "no table of SQLMesh is there" in notice.render_unmarked()
