"""A project that does not load: the base branch's doing, or the pull request's, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_bot.bot.decision import choose_exit_code_of_decision
from ci_bot.protocol.review_report import Report, Risk
from tests.projects import Shop
from tests.projects.duck import run_prod
from tests.projects.history import BROKEN, CONFIG, Repository, sql_model
from tests.worker import Client

GOOD = {"config.yaml": CONFIG, "models/good.sql": sql_model("good"), "README.md": "shop\n"}
GOOD[".gitignore"] = ".cache/\n"
BAD_BASE = {**GOOD, "models/broken.sql": BROKEN}
README = {"README.md": "The shop.\n"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "project")


def reviewed(
    repository: Repository,
    base: dict[str, str],
    head: dict[str, str | None],
    baseline: str = "base-branch",
    projects: tuple[str, ...] = (".",),
) -> Report:
    commits = repository.pull_request(base, head)
    client = Client(repository.root, projects)
    report: Report = client.review("pr_7", commits=commits, baseline=baseline)
    assert "ci-bot-" not in report.to_json(), "a private directory is named"
    assert not [line for line in client.heard.log if "/ci-bot-" in line]
    assert str(repository.root) not in report.to_json(), (
        report.failure,
        report.notes,
        report.decision,
    )
    return report


def of_rule(report: Report, rule: str) -> Risk:
    (found,) = [risk for risk in report.risks if risk.rule == rule]
    return found


def blamed(report: Report) -> bool:
    return report.decision == "no_go" or report.failure is not None


def test_broken_base__of_a_readme_commit__is_green_and_names_the_file(
    repository: Repository,
) -> None:
    report = reviewed(repository, BAD_BASE, README)
    assert (report.decision, report.failure) == ("no_changes", None)
    assert choose_exit_code_of_decision(report.decision, "high") == 0
    risk = of_rule(report, "R01-base-broken")
    assert (risk.severity, risk.path, risk.line) == ("medium", "models/broken.sql", 3)
    assert "Expecting )" in risk.evidence
    assert "This pull request is not why" in risk.evidence
    assert not report.appliable


@pytest.mark.night
def test_broken_base__of_a_change_elsewhere__is_a_review_without_blame(
    repository: Repository,
) -> None:
    report = reviewed(repository, BAD_BASE, {"models/good.sql": sql_model("good", "SELECT 2 AS a")})
    assert (report.decision, report.failure, report.plan_id) == ("review", None, None)
    assert of_rule(report, "R01-base-broken").severity == "high"
    assert not any(risk.rule == "R01-load-failed" for risk in report.risks)


@pytest.mark.night
def test_broken_base__that_is_repaired__makes_everything_new(repository: Repository) -> None:
    report = reviewed(repository, BAD_BASE, {"models/broken.sql": sql_model("broken")})
    assert (report.decision, report.failure) == ("review", None)
    assert {(change.model, change.change) for change in report.changes} == {
        ("shop.good", "added"),
        ("shop.broken", "added"),
    }
    assert "With this pull request it does" in of_rule(report, "R01-base-broken").evidence
    assert any("does not load" in note for note in report.notes)
    assert not any("ompared with the base branch" in note for note in report.notes)


@pytest.mark.night
def test_broken_base__touched_and_still_broken__is_no_go(repository: Repository) -> None:
    report = reviewed(repository, BAD_BASE, {"models/broken.sql": BROKEN + "-- more\n"})
    assert report.decision == "no_go"
    assert report.failure is not None
    assert (report.failure.path, report.failure.line) == ("models/broken.sql", 3)
    assert "The base branch does not load either" in report.failure.message


def test_broken_head__is_no_go_with_file_line_and_cause(repository: Repository) -> None:
    report = reviewed(repository, GOOD, {"models/broken.sql": BROKEN})
    assert report.decision == "no_go"
    failure = report.failure
    assert failure is not None
    assert (failure.stage, failure.path, failure.line) == ("load", "models/broken.sql", 3)
    assert failure.message.startswith("Failed to load model from file 'models/broken.sql':")
    assert "sqlmesh info" in str(failure.hint)
    assert of_rule(report, "R01-load-failed").severity == "blocker"


@pytest.mark.night
def test_broken_head__of_a_python_model__names_it(repository: Repository) -> None:
    text = (
        "from sqlmesh import model\n\n\n@model(\n    'shop.broken',\n    columns={'a': 'int'},\n)\n"
        "def execute(context, **kwargs):\n    return (\n"
    )

    report = reviewed(repository, GOOD, {"models/broken.py": text})

    assert report.failure is not None
    assert (report.failure.model, report.failure.path) == ("shop.broken", "models/broken.py")


@pytest.mark.night
def test_broken_base__with_many_failures__is_not_blamed_for_the_one_met_first(
    repository: Repository,
) -> None:
    # Which file of a set fails first differs between two processes.
    many = {f"models/b{n}.sql": sql_model(f"b{n}", f"SELECT ({n} AS one") for n in range(8)}
    report = reviewed(repository, {**GOOD, **many}, README)
    assert not blamed(report)
    assert {failure.path for failure in report.base_failures} == set(many)


def test_broken_base__that_breaks_in_one_more_file__blames_for_that_one_alone(
    repository: Repository,
) -> None:
    many = {f"models/b{n}.sql": sql_model(f"b{n}", f"SELECT ({n} AS one") for n in range(8)}
    report = reviewed(repository, {**GOOD, **many}, {"models/new.sql": BROKEN})
    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.path == "models/new.sql"
    assert "8 of its failures are here unchanged" in report.failure.message


@pytest.mark.night
def test_broken_head__in_many_files__names_the_others_too(repository: Repository) -> None:
    many = {f"models/b{n}.sql": sql_model(f"b{n}", f"SELECT ({n} AS one") for n in range(3)}
    report = reviewed(repository, GOOD, {**many})
    assert report.failure is not None
    assert report.failure.path == "models/b0.sql"
    assert "Also failing: models/b1.sql, models/b2.sql." in report.failure.message


@pytest.mark.night
def test_broken_macro__that_a_pull_request_removes__is_its_doing(repository: Repository) -> None:
    macro = (
        "from sqlmesh import macro\n\n\n@macro()\ndef twice(evaluator, x):\n    return f'{x} * 2'\n"
    )
    base = {**GOOD, "macros/m.py": macro, "models/m.sql": sql_model("m", "SELECT @twice(1) AS a")}
    report = reviewed(repository, base, {"macros/m.py": None})
    # SQLMesh hears of it when it renders, which is after loading or while planning.
    assert report.decision == "no_go"
    assert report.base_failures == []


def test_broken_configuration__on_both_sides__is_not_the_pull_request_s(
    repository: Repository,
) -> None:
    base = {**GOOD, "config.yaml": CONFIG + "no_such_key: 1\ngateways: [\n"}
    report = reviewed(repository, base, README)
    assert not blamed(report)
    assert of_rule(report, "R01-base-broken").path == "config.yaml"


@pytest.mark.night
def test_broken_configuration__of_the_head_alone__is_no_go_and_bad_input(
    repository: Repository,
) -> None:
    report = reviewed(repository, GOOD, {"config.yaml": CONFIG + "gateways: [\n"})
    assert report.decision == "no_go"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.exit_code) == ("configuration", 2)
    assert report.failure.path == "config.yaml"


@pytest.mark.night
def test_configuration__that_asks_for_input__is_named(repository: Repository) -> None:
    asks = "PASSWORD = input()\nfrom sqlmesh.core.config import Config\nconfig = Config()\n"
    report = reviewed(repository, GOOD, {"config.yaml": None, "config.py": asks})
    assert report.failure is not None
    assert "`config.py` asks for input" in report.failure.message
    assert (report.failure.path, report.failure.line) == ("config.py", 1)


@pytest.mark.night
def test_configuration__whose_module_does_not_load__is_not_called_invalid(
    repository: Repository,
) -> None:
    config = (
        "import sys\nfrom pathlib import Path\nsys.path.append(str(Path(__file__).parent))\n"
        "from own_settings import NAME\nfrom sqlmesh.core.config import Config\nconfig = Config()\n"
    )
    module = {"own_settings.py": "import no_such_package_9\nNAME = 'x'\n"}
    report = reviewed(repository, GOOD, {"config.yaml": None, "config.py": config, **module})
    assert report.failure is not None
    assert report.failure.message == (
        "The SQLMesh configuration does not load: `own_settings.py` imports `no_such_package_9`, "
        "which is not installed here."
    )
    assert report.failure.path == "own_settings.py"


@pytest.mark.night
def test_macro_tests__that_import_a_missing_package__are_named_on_either_side(
    repository: Repository,
) -> None:
    test = {"macros/tests/test_m.py": "import no_such_package_9\n"}
    report = reviewed(repository, GOOD, dict(test))
    assert report.failure is not None
    assert report.failure.message == (
        "`macros/tests/test_m.py` imports `no_such_package_9`, which is not installed here."
    )
    assert "`requirements`" in str(report.failure.hint)
    again = reviewed(
        repository, {"README.md": "1\n"}, {"models/good.sql": sql_model("good", "SELECT 3 AS a")}
    )
    assert not blamed(again)
    assert "no_such_package_9" in of_rule(again, "R01-base-broken").evidence


@pytest.mark.night
def test_base__that_ends_its_process__does_not_end_the_review(repository: Repository) -> None:
    base = {"config.py": "import os\nos._exit(3)\n", "models/good.sql": sql_model("good")}
    report = reviewed(repository, base, {"config.py": None, "config.yaml": CONFIG})
    assert report.decision == "review"
    assert "ended with exit code 3" in of_rule(report, "R01-base-broken").evidence


@pytest.mark.night
def test_base__without_the_project__makes_everything_new_and_is_not_broken(
    repository: Repository,
) -> None:
    added = {f"analytics/{name}": text for name, text in GOOD.items()}
    report = reviewed(repository, {"README.md": "1\n"}, added, projects=("analytics",))
    assert not blamed(report)
    assert report.base_failures == []
    assert [change.change for change in report.changes] == ["added"]
    assert "The base branch has no SQLMesh project here: everything is new." in report.notes


def state_repository(
    repository: Repository, tmp_path: Path, more: dict[str, str] | None = None
) -> dict[str, str]:
    """A project with a state of its own, whose prod is built from what loads."""
    config = CONFIG.replace(
        "connection: {type: duckdb}",
        f"connection: {{type: duckdb, database: {tmp_path}/warehouse.duckdb}}\n"
        f"    state_connection: {{type: duckdb, database: {tmp_path}/state.duckdb}}",
    )
    good = {**GOOD, "config.yaml": config, **(more or {})}
    repository.commit(good)
    run_prod(Shop(repository.root.parent), "2024-01-11")
    return good


@pytest.mark.night
@pytest.mark.slow
def test_state__where_the_base_fails_alike__blames_nobody(
    repository: Repository, tmp_path: Path
) -> None:
    good = state_repository(repository, tmp_path)
    report = reviewed(repository, {**good, "models/broken.sql": BROKEN}, README, baseline="state")
    assert (report.decision, report.failure) == ("no_changes", None)
    assert of_rule(report, "R01-base-broken").path == "models/broken.sql"


@pytest.mark.night
@pytest.mark.slow
def test_state__where_the_base_loads__blames_the_head(
    repository: Repository, tmp_path: Path
) -> None:
    good = state_repository(repository, tmp_path)
    report = reviewed(repository, good, {"models/broken.sql": BROKEN}, baseline="auto")
    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.path == "models/broken.sql"
    assert "base branch" not in report.failure.message


GONE = sql_model("gone", "SELECT 3 AS a")
THEIRS = "MODEL (name theirs.b, kind FULL);\n\nSELECT 3 AS a\n"


def removals_after(
    repository: Repository, tmp_path: Path, extra: dict[str, str], head: dict[str, str | None]
) -> Report:
    """The review of a head, where prod has more models than the base branch has now."""
    good = state_repository(repository, tmp_path, extra)
    base: dict[str, str | None] = {**good, **dict.fromkeys(extra)}
    return reviewed(repository, base, head, baseline="state")


@pytest.mark.slow
def test_removal__by_the_base_branch__is_not_told_as_the_pull_request_s(
    repository: Repository, tmp_path: Path
) -> None:
    added: dict[str, str | None] = {"models/new.sql": sql_model("new", "SELECT 2 AS b")}
    report = removals_after(repository, tmp_path, {"models/gone.sql": GONE}, added)
    risk = of_rule(report, "R04-model-removed")
    assert (risk.model, risk.severity) == ("shop.gone", "medium")
    assert risk.evidence.startswith("The base branch has removed this model")
    assert not any(other.rule == "base-drift" for other in report.risks)
    assert report.decision == "go"


@pytest.mark.slow
def test_removal__by_the_pull_request__is_its_own(repository: Repository, tmp_path: Path) -> None:
    good = state_repository(repository, tmp_path, {"models/gone.sql": GONE})
    report = reviewed(repository, good, {"models/gone.sql": None}, baseline="state")
    risk = of_rule(report, "R04-model-removed")
    assert (risk.model, risk.severity) == ("shop.gone", "high")
    assert risk.evidence.startswith("The model is removed.")


@pytest.mark.night
@pytest.mark.slow
def test_removal__of_another_schema__may_be_another_projects(
    repository: Repository, tmp_path: Path
) -> None:
    report = removals_after(repository, tmp_path, {"models/theirs.sql": THEIRS}, dict(README))
    risk = of_rule(report, "R04-model-removed")
    assert (risk.model, risk.severity) == ("theirs.b", "high")
    assert "another project on the same state" in risk.evidence
    assert report.decision == "review"


def test_dbt_project__against_the_base_branch__is_refused_in_one_sentence(
    repository: Repository,
) -> None:
    files = {
        "dbt_project.yml": "name: shop\nprofile: shop\n",
        "sqlmesh.yaml": "model_defaults: {dialect: spark, start: 2024-01-01}\n",
        "models/a.sql": "SELECT 1 AS a\n",
    }
    failure = reviewed(repository, files, {"models/a.sql": "SELECT 2 AS a\n"}).failure
    assert failure is not None
    assert failure.message == (
        "There is a dbt project without a config.py in `.`, and such a project cannot be compared "
        "with the base branch."
    )
    assert (failure.exit_code, failure.reason_code) == (2, "dbt_project")
    assert "`baseline: state`" in str(failure.hint)
    # dbt is not installed where tests run, which is what a review with the state stops at.
    of_state = reviewed(repository, files, {"models/a.sql": "SELECT 3 AS a\n"}, "state").failure
    assert of_state is not None
    assert "is not installed here" in of_state.message
    assert "`sqlmesh[dbt]`" in str(of_state.hint)


# Ends the process beside this one, which loads the base branch's project.
KILLS_ITS_SIBLINGS = """\
import os, signal, time
if not os.path.exists(os.path.join(os.path.dirname(__file__), "..", "base_is_here")):
    deadline = time.time() + 20
    while time.time() < deadline:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = file.read().split()
        if children:
            break
    for child in children:
        os.kill(int(child), signal.SIGKILL)
"""


@pytest.mark.night
def test_base__whose_process_the_heads_code_kills__is_blamed_for_nothing(
    repository: Repository,
) -> None:
    base = {**GOOD, "base_is_here": ""}
    head = {"macros/__init__.py": "", "macros/kill.py": KILLS_ITS_SIBLINGS, "base_is_here": None}
    report = reviewed(repository, base, head)
    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.reason_code == "worker_crashed"
    assert "killed by signal 9" in report.failure.message
    assert not any(risk.rule == "R01-base-broken" for risk in report.risks)
    assert any(risk.rule == "R12-code-on-load" for risk in report.risks)


@pytest.mark.night
def test_base__whose_process_is_killed__leaves_the_heads_own_failure(
    repository: Repository,
) -> None:
    base = {**GOOD, "base_is_here": ""}
    head = {
        "macros/__init__.py": "",
        "macros/kill.py": KILLS_ITS_SIBLINGS,
        "models/broken.sql": BROKEN,
        "base_is_here": None,
    }
    report = reviewed(repository, base, head)
    assert report.decision == "no_go"
    assert report.failure is not None
    assert report.failure.path == "models/broken.sql"
    assert "base branch" not in report.failure.message
