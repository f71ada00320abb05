"""`ci-bot prod-plan`: the plan that a review showed for prod, asked for again before a deployment."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlmesh.core.console import NoopConsole, set_console
from sqlmesh.core.context import Context

from ci_bot.bot.cli.local_review import LaptopReview, review_on_laptop
from ci_bot.bot.cli.prod_plan import plan_prod_on_laptop
from ci_bot.errors import BadInput, BotError, RequestRefused
from ci_bot.host import make_process_machine
from ci_bot.protocol.review_inputs import DeploymentPlan, RecordedRestatement, RestatementWish
from ci_bot.protocol.review_report import Report
from tests import nights
from tests.projects.duck import run_prod
from tests.projects.repository import Repository, write_repository
from tests.worker import OWNER, Client

ORDERS = "models/orders.sql"
REVENUE = "models/revenue.sql"
PYTHONPATH = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def team(tmp_path: Path) -> Repository:
    """The shop with prod built, and a branch on which something can change."""
    repository = write_repository(tmp_path / "repository")
    run_prod(repository.shop, "2024-01-10")
    repository.git("checkout", "-q", "-b", "work")
    return repository


def change_amount(team: Repository) -> None:
    team.shop.edit(ORDERS, "customer_id * 10", "customer_id * 20")
    team.commit({}, "Another amount")


def reviewed(team: Repository, **asked: Any) -> Report:
    out = io.StringIO()
    machine = replace(make_process_machine(), directory=team.root, out=out, log=io.StringIO())
    review_on_laptop(machine, LaptopReview(projects=("project",), form="json", **asked))
    return Report.model_validate_json(out.getvalue())


def prod_plan(team: Repository, expect: str | None = None, **asked: Any) -> DeploymentPlan:
    out = io.StringIO()
    around = make_process_machine()
    environ = {**around.environ, "GITHUB_REPOSITORY": OWNER}
    machine = replace(around, environ=environ, directory=team.root, out=out, log=io.StringIO())
    options = {
        "reviewed": None,
        "pull_requests": (),
        "restatements": None,
        "forward_only": None,
        "allow_destructive": (),
        **asked,
    }
    code = plan_prod_on_laptop(
        machine,
        projects=("project",),
        gateway=None,
        expect=expect,
        python_path=(),
        worker_env="",
        timeout_minutes=5,
        form="json",
        **options,
    )
    assert code == 0
    return DeploymentPlan.model_validate_json(out.getvalue())


def by_sqlmesh(team: Repository, environment: str, at: str) -> None:
    """What a person's own `sqlmesh plan` does."""
    set_console(NoopConsole())
    context = Context(paths=[str(team.shop.project)])
    try:
        builder = context.plan_builder(environment, skip_tests=True, execution_time=at)
        context.apply(builder.build())
    finally:
        context.close()


def test_prod_plan__is_the_one_that_the_review_showed(team: Repository) -> None:
    change_amount(team)
    shown = reviewed(team, environment="pr_7").prod_plan
    assert shown is not None
    assert shown.plan_id is not None
    before = team.shop.state.read_bytes()

    again = prod_plan(team, expect=shown.plan_id)

    assert again.plan_id == shown.plan_id
    assert prod_plan(team, expect=shown.plan_id[:12]).changes == again.changes > 1
    assert team.shop.state.read_bytes() == before


@pytest.mark.night
def test_prod_plan__stays_the_same_while_prod_runs_on_and_the_environment_is_built(
    team: Repository,
) -> None:
    change_amount(team)
    shown = reviewed(team, environment="pr_7").prod_plan
    assert shown is not None
    by_sqlmesh(team, "pr_7", "2024-01-10")
    run_prod(team.shop, "2024-01-12")

    assert prod_plan(team, expect=shown.plan_id).plan_id == shown.plan_id


def drops_a_model(team: Repository) -> None:
    (team.shop.project / "models/top_customers.sql").unlink()


def adds_a_model(team: Repository) -> None:
    team.shop.write("models/new.sql", "MODEL (name shop.new, kind FULL); SELECT 1 AS one")


def writes_metadata(team: Repository) -> None:
    team.shop.edit(REVENUE, "MODEL (", "MODEL (\n  description 'Money',")


def changes_a_reader(team: Repository) -> None:
    text = (team.shop.project / REVENUE).read_text("utf-8")
    team.shop.write(REVENUE, text.replace("SELECT\n", "SELECT\n  1 AS more,\n", 1))


def adds_a_statement(team: Repository) -> None:
    config = (team.shop.project / "config.yaml").read_text("utf-8")
    team.shop.write("config.yaml", f"{config}before_all: [SELECT 1]\n")


COMES_IN = {
    "a dropped model": drops_a_model,
    "a new model": adds_a_model,
    "metadata": writes_metadata,
    "a changed reader": changes_a_reader,
    "a statement": adds_a_statement,
}


@pytest.mark.parametrize("also", nights.cases(COMES_IN, by_day=["a dropped model"]))
def test_expect__refuses_whatever_else_came_in(
    team: Repository, also: Callable[[Repository], None]
) -> None:
    change_amount(team)
    shown = reviewed(team).prod_plan
    assert shown is not None
    also(team)

    with pytest.raises(
        RequestRefused, match=r"The plan for prod is `\w{12}`, and the reviewed"
    ) as caught:
        prod_plan(team, expect=shown.plan_id)

    assert (caught.value.exit_code, caught.value.reason_code) == (3, "plan_changed")


@pytest.mark.night
def test_expect__refuses_what_was_deployed_already(team: Repository) -> None:
    change_amount(team)
    shown = reviewed(team).prod_plan
    assert shown is not None
    by_sqlmesh(team, "prod", "2024-01-10")

    with pytest.raises(
        RequestRefused, match="The plan for prod changes nothing, and the reviewed one is"
    ):
        prod_plan(team, expect=shown.plan_id)


@pytest.mark.night
def test_expect__none_is_for_a_merge_that_changes_nothing(team: Repository) -> None:
    assert prod_plan(team, expect="none").plan_id is None
    change_amount(team)
    with pytest.raises(RequestRefused, match="and the review showed no change"):
        prod_plan(team, expect="none")


def restated(team: Repository, model: str, *dates: str) -> RecordedRestatement:
    """What an owner has asked for in pull request 7, as a review planned it then."""
    start, end = [*dates, None, None][:2]
    wish = RestatementWish(
        model=model,
        start=start,
        end=end,
        by="alice",
        at="2024-02-01T10:00:00Z",
        reason="late rows",
        comment_id=9,
    )
    client = Client(team.root, projects=("project",))
    report = client.review("pr_7", baseline="state", number=7, wish=wish)
    (item,) = report.prod_restatements
    client.restate(item.recorded.model, item.recorded, 7)
    return item.recorded


@pytest.mark.night
def test_restatements__of_the_merged_pull_request_follow_its_plan(team: Repository) -> None:
    writes_metadata(team)
    team.commit({}, "Say what it is")
    shown = reviewed(team).prod_plan
    assert shown is not None
    assert shown.plan_id is not None
    asked = restated(team, "shop.revenue", "2024-01-03", "2024-01-04")

    plan = prod_plan(
        team, expect=shown.plan_id, pull_requests=(7,), restatements="restatements.tsv"
    )

    (item,) = plan.restatements
    assert (item.recorded, item.problem) == (asked, None)
    assert plan.plan_id == shown.plan_id
    lines = (team.root / "restatements.tsv").read_text("utf-8")
    dates = ("2024-01-03T00:00:00Z", "2024-01-05T00:00:00Z", "2024-01-10T00:00:00Z")
    assert lines == "\t".join(("shop.revenue", *dates)) + "\n"


@pytest.mark.night
def test_restatements__of_another_pull_request_are_not_taken(team: Repository) -> None:
    restated(team, "shop.revenue")
    for numbers in ((), (8,)):
        plan = prod_plan(team, pull_requests=numbers, restatements="restatements.tsv")
        assert plan.restatements == []
        assert (team.root / "restatements.tsv").read_text("utf-8") == ""


@pytest.mark.night
def test_restatements__that_are_not_what_was_reviewed_are_refused(team: Repository) -> None:
    restated(team, "shop.revenue")
    changes_a_reader(team)

    with pytest.raises(RequestRefused, match=r"`shop\.revenue` that `@alice` asked for") as caught:
        prod_plan(team, pull_requests=(7,), restatements="restatements.tsv")

    assert (caught.value.exit_code, caught.value.reason_code) == (3, "restatement_changed")
    assert not (team.root / "restatements.tsv").exists()


def kept(team: Repository, report: Report) -> str:
    """The report as the review's artifact holds it."""
    (team.root / "report.json").write_text(report.to_json(), "utf-8")
    return "report.json"


@pytest.mark.night
def test_reviewed__takes_the_plan_from_the_report(team: Repository) -> None:
    unchanged = kept(team, reviewed(team))
    assert prod_plan(team, reviewed=unchanged).changes == 0
    change_amount(team)
    with pytest.raises(RequestRefused, match="and the review showed no change"):
        prod_plan(team, reviewed=unchanged)
    assert prod_plan(team, reviewed=kept(team, reviewed(team))).changes > 1


@pytest.mark.night
def test_reviewed__needs_a_report_that_shows_a_plan_of_prod(team: Repository) -> None:
    change_amount(team)
    of_a_fork = kept(team, reviewed(team, baseline="base-branch", base_ref="main"))
    for name, code in ((of_a_fork, "no_reviewed_plan"), ("gone.json", "bad_input")):
        with pytest.raises(BadInput) as caught:
            prod_plan(team, reviewed=name)
        assert caught.value.reason_code == code
    with pytest.raises(BadInput, match="both say which plan"):
        prod_plan(team, expect="none", reviewed=of_a_fork)


@pytest.mark.night
def test_options__that_were_reviewed_are_needed_again(team: Repository) -> None:
    change_amount(team)
    plain = prod_plan(team)
    forward = prod_plan(team, forward_only=True)
    assert forward.plan_id != plain.plan_id
    assert prod_plan(team, expect=forward.plan_id, forward_only=True) == forward


@pytest.mark.night
def test_prod_plan__that_the_command_line_would_not_make__is_bad_input(team: Repository) -> None:
    """Changes are categorized by `cicd_bot:` in a review, and by `plan:` in `sqlmesh plan`."""
    change_amount(team)
    config = (team.shop.project / "config.yaml").read_text("utf-8")
    own = "cicd_bot:\n  type: github\n  auto_categorize_changes: {sql: full}\n"
    team.shop.write("config.yaml", config + own)

    with pytest.raises(BadInput, match=r"`cicd_bot\.auto_categorize_changes` is not read by") as e:
        prod_plan(team)

    assert "plan.auto_categorize_changes" in str(e.value.hint)
    team.shop.write("config.yaml", f"{config}plan:\n  auto_categorize_changes: {{sql: full}}\n")
    assert prod_plan(team).plan_id


def test_prod_plan__of_a_project_that_does_not_load__is_no_plan(team: Repository) -> None:
    team.shop.edit(ORDERS, "FROM", "FRO M")
    with pytest.raises(BotError) as caught:
        prod_plan(team, expect="none")
    assert caught.value.exit_code == 1


@pytest.mark.night
def test_review__against_the_base_branch__shows_no_plan_that_could_be_expected(
    team: Repository,
) -> None:
    change_amount(team)
    shown = reviewed(team, baseline="base-branch", base_ref="main").prod_plan
    assert shown is not None
    assert shown.changes
    assert shown.plan_id is None


def test_command__prints_the_plan_and_exits_3_for_another(team: Repository) -> None:
    change_amount(team)

    def ran(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ci_bot", "prod-plan", "project", *more],
            cwd=team.root,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            capture_output=True,
            text=True,
            check=False,
        )

    shown = ran("--expect", "0123456789ab")
    assert shown.returncode == 3
    assert "Prod's plan" in shown.stdout
    assert "shop.orders" in shown.stdout
    assert "the reviewed one is `0123456789ab`" in shown.stderr
    assert json.loads(ran("--format", "json").stdout)["plan_id"][:12] in shown.stdout
    wrong = ran("--expect", "main")
    assert wrong.returncode == 2
    assert "hexadecimal" in wrong.stderr


@pytest.mark.parametrize("form", ["terminal", "json"])
def test_prod_plan__of_a_state_without_prod_says_so(
    tmp_path: Path, form: Literal["terminal", "json"]
) -> None:
    repository = write_repository(tmp_path / "repository")
    out, log = io.StringIO(), io.StringIO()
    machine = replace(make_process_machine(), directory=repository.root, out=out, log=log)

    code = plan_prod_on_laptop(
        machine,
        projects=("project",),
        gateway=None,
        expect=None,
        reviewed=None,
        pull_requests=(),
        restatements=None,
        forward_only=None,
        allow_destructive=(),
        python_path=(),
        worker_env="",
        timeout_minutes=5,
        form=form,
    )

    assert code == 0
    told = " ".join((out if form == "terminal" else log).getvalue().split())
    assert "No prod was found in the state (DuckDB, file " in told
    assert "every model counts as new" in told
    assert "nothing changes" not in told
    if form == "json":
        assert DeploymentPlan.model_validate_json(out.getvalue()).changes > 0
