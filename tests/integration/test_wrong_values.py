"""Wrong values that only the project can tell: exit 2, two lines, and nothing looked at or written.

The command line in a real process, with the real worker, on the shop whose prod is on Spark. None of
these runs comes as far as starting Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import nights
from tests.checkout import Repository
from tests.conftest import REPOSITORY
from tests.integration.test_review import digest
from tests.projects import Shop
from tests.projects.duck import write_duck_shop
from tests.shared_jvm import JVM

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def ci_bot(*arguments: str, directory: Path, **variables: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "ci_bot", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    JVM.settle()
    return Ran(done.returncode, done.stdout, done.stderr)


def told(ran: Ran) -> list[str]:
    """What a refused run says, without the worker's progress."""
    lines = ran.err.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("ci-bot: "))
    return lines[start:]


APPLY = ("apply", "--project", ".", "--environment", "pr_9")
REVIEW = ("review", "--project", ".", "--environment", "pr_9")
WRONG = {
    "a gateway": ((*REVIEW, "--gateway", "nope"), "`nope`", "Known gateways: spark"),
    "a gateway for an apply": ((*APPLY, "--gateway", "nope"), "`nope`", "spark"),
    "no selection": ((*APPLY, "--select-model", "+*&^(("), "'+*&^(('", "`shop.orders`"),
    "half a selection": ((*APPLY, "--select-model", "(shop.orders"), "'(shop.orders'", "`shop.*`"),
    "two for one selection": ((*APPLY, "--select-model", "a* b*"), "'a* b*'", "`shop.*`"),
    "a deep selection": ((*APPLY, "--select-model", "(" * 900), "more characters", "`shop.*`"),
    "an unknown kind": ((*APPLY, "--select-model", "resource_type:x"), "x", "`shop.*`"),
    "a branch that is not there": ((*APPLY, "--select-model", "git:nope"), "'git:nope'", "model"),
    "an unknown selected model": (
        (*APPLY, "--select-model", "shop.order"),
        "order'",
        "shop.orders",
    ),
    "an unknown restated model": ((*APPLY, "--restate-model", "nope"), "'nope'", "has 4 models"),
    "no restatement": (
        (*APPLY, "--restate-model", "^^"),
        "`restate-model` cannot be '^^'",
        "model",
    ),
    "an unknown allowed model": ((*APPLY, "--allow-destructive", "no pe"), "'no pe'", "models"),
    "a start": ((*APPLY, "--start", "nope"), "`start` is 'nope'", "2024-01-31"),
    "a start before all data": ((*APPLY, "--start", "0001-01-01"), "1900 to 2200", "2024-01-31"),
    "an end": ((*APPLY, "--end", "2024-99-99"), "`end` is '2024-99-99'", "2024-01-31"),
    "an end after all data": ((*APPLY, "--end", "9999-12-31"), "1900 to 2200", "2024-01-31"),
    "dates the wrong way round": (
        (*APPLY, "--start", "2024-01-05", "--end", "2024-01-02"),
        "2024-01-05T00:00:00Z",
        "Swap the dates",
    ),
    "no directory": (("review", "--project", "nope"), "`nope` does not exist", "SQLMesh project"),
    "a base that is not named": (
        (*REVIEW, "--baseline", "base-branch"),
        "names nothing to compare with",
        "commit",
    ),
    "a base outside of git": ((*REVIEW, "--base-ref", "main"), "'main' names nothing", "commit"),
    "an option of two forms": ((*REVIEW, "--full", "--format", "json"), "`--full`", "one of"),
}


BY_DAY = (
    "a gateway",
    "no selection",
    "an unknown kind",
    "a branch that is not there",
    "an unknown allowed model",
    "a start",
    "dates the wrong way round",
    "no directory",
    "a base that is not named",
    "a base outside of git",
    "an option of two forms",
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("case", nights.cases(list(WRONG), by_day=BY_DAY))
def test_wrong_value__is_two_lines_and_nothing_is_touched(case: str, shop: Shop) -> None:
    arguments, what, how = WRONG[case]
    before = digest(shop.state)

    ran = ci_bot(*arguments, directory=shop.project)

    assert (ran.code, ran.out) == (2, ""), ran.err
    first, second = told(ran)
    assert what in first
    assert how in second
    assert "Traceback" not in ran.err
    assert digest(shop.state) == before


@pytest.fixture
def duck(tmp_path: Path) -> Shop:
    return write_duck_shop(tmp_path)


@pytest.mark.parametrize("form", nights.cases(["terminal", "markdown", "json"], by_day=["json"]))
def test_bad_configuration__has_no_report_in_any_form(
    duck: Shop, tmp_path: Path, form: str
) -> None:
    duck.write("config.yaml", "gateways: [")
    ran = ci_bot(
        *REVIEW, "--format", form, "--output", str(tmp_path / "out"), directory=duck.project
    )
    assert (ran.code, ran.out) == (2, "")
    first, *parser, last = told(ran)
    assert first.startswith("ci-bot: The SQLMesh configuration in config.yaml is not valid: ")
    assert "line 1, column 12" in "".join(parser)
    assert last.startswith("        Correct the configuration")
    assert not (tmp_path / "out").exists()


@pytest.mark.night
def test_configuration__that_the_change_breaks__is_no_go_with_a_document(duck: Shop) -> None:
    Repository(duck.project, new=False).commit()
    duck.write("config.yaml", (duck.project / "config.yaml").read_text() + "\nno_such_key: 1\n")
    ran = ci_bot(
        *REVIEW, "--base-ref", "HEAD", "--baseline", "base-branch", "--format", "json",
        directory=duck.project,
    )  # fmt: skip
    assert ran.code == 2, ran.err
    document = json.loads(ran.out)
    assert document["decision"] == "no_go"
    assert document["failure"]["path"] == "config.yaml"
    assert "no_such_key" in document["failure"]["message"]


PYTHON = """\
from pathlib import Path
from sqlmesh.dbt.loader import sqlmesh_config
config = sqlmesh_config(Path(__file__).parent)
"""
DBT = {
    "configured in YAML": ("sqlmesh.yaml", "model_defaults: {start: 2024-01-01}\n", "state"),
    "configured in Python": ("config.py", PYTHON, "state"),
    "configured in Python, beside the base": ("config.py", PYTHON, "base-branch"),
    "configured in YAML, beside the base": (
        "sqlmesh.yaml", "model_defaults: {start: 2024-01-01}\n", "base-branch",
    ),
}  # fmt: skip


@pytest.mark.night
@pytest.mark.parametrize("case", DBT)
def test_dbt_project__that_cannot_be_read__is_called_one(case: str, tmp_path: Path) -> None:
    name, text, baseline = DBT[case]
    project = tmp_path / "project"
    project.mkdir()
    (project / name).write_text(text)
    (project / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    Repository(project, new=False).commit()
    ran = ci_bot(*REVIEW, "--base-ref", "HEAD", "--baseline", baseline, directory=project)
    assert (ran.code, ran.out) == (2, "")
    first, last = told(ran)
    in_yaml = baseline == "base-branch" and name == "sqlmesh.yaml"
    assert "dbt project" in first
    assert ("`baseline: state`" if in_yaml else "sqlmesh[dbt]") in last


def test_no_configuration__is_told_with_the_real_path(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = ci_bot("review", "--project", ".", directory=tmp_path / "empty")
    assert ran.code == 2
    assert f"(config.yaml or config.py) in {tmp_path / 'empty'}." in told(ran)[0]


def test_no_configuration__of_a_dbt_project__names_the_command_that_writes_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: shop\n")
    Repository(tmp_path, new=False).commit()
    ran = ci_bot(*REVIEW, "--base-ref", "HEAD", directory=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    first, last = told(ran)
    assert "This is a dbt project, and there is no configuration of SQLMesh in " in first
    assert "`sqlmesh init --template dbt` writes one" in last


def test_no_configuration__names_those_below(tmp_path: Path) -> None:
    below = tmp_path / "warehouse" / "config.yaml"
    below.parent.mkdir()
    below.write_text("model_defaults: {dialect: duckdb}\n")
    ran = ci_bot("review", directory=tmp_path)
    assert ran.code == 2
    assert str(Path("warehouse", "config.yaml")) in told(ran)[1]


def test_no_configuration__names_the_one_above(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model_defaults: {dialect: duckdb}\n")
    (tmp_path / "models").mkdir()
    Repository(tmp_path, new=False).commit()
    ran = ci_bot("review", directory=tmp_path / "models")
    assert ran.code == 2
    assert told(ran)[1].strip().startswith("Above it there is config.yaml. Name its directory: ")


def test_state__whose_file_a_missing_variable_names__is_told_with_the_variable(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text(
        "gateways: {duck: {connection: {type: duckdb, database: \"{{ env_var('LAKE_FILE') }}\"}}}\n"
        "default_gateway: duck\nmodel_defaults: {dialect: duckdb}\n"
    )
    Repository(tmp_path, new=False).commit()
    ran = ci_bot("review", "--baseline", "state", directory=tmp_path)
    assert ran.code == 2
    assert "(duckdb) cannot be read, because `LAKE_FILE` is not set: " in told(ran)[0]


def test_engine__that_is_not_spark__is_told_before_anything_is_done(duck: Shop) -> None:
    for arguments in (APPLY, ("cleanup", "--project", ".", "--environment", "pr_9")):
        ran = ci_bot(*arguments, directory=duck.project)
        assert (ran.code, ran.out) == (2, ""), ran.err
        assert "gateway `duck` is duckdb" in told(ran)[0]
        # Nobody has to have reviewed it, but whoever starts it should know.
        assert ("without `--plan-id`" in ran.err) == (arguments is APPLY)
    assert not duck.state.exists(), "nothing was created"


@pytest.mark.night
def test_base__that_is_misspelt__is_suggested(duck: Shop) -> None:
    repository = Repository(duck.project, new=False)
    repository.commit()
    repository.git("branch", "release-2024")
    ran = ci_bot(*REVIEW, "--base-ref", "mian", directory=duck.project)
    assert (ran.code, ran.out) == (2, "")
    assert told(ran) == [
        "ci-bot: The repository has no branch, tag or commit 'mian'.",
        "        Did you mean `main`?",
    ]
    ran = ci_bot(*REVIEW, "--base-ref", "zzz", directory=duck.project)
    assert told(ran)[1] == "        `git branch --all` lists the branches."


@pytest.mark.night
def test_projects__that_are_not_together__are_told_why(duck: Shop, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    both = ("--project", "one", "--project", "two")
    assert told(ci_bot("review", *both, directory=tmp_path))[0] == (
        "ci-bot: Several projects are planned together in one git repository only, and `one` and "
        "`two` are in none."
    )
    Repository(tmp_path / "one", new=False)
    assert told(ci_bot("review", *both, directory=tmp_path))[0].endswith("and `two` is in none.")
    Repository(tmp_path / "two", new=False)
    assert told(ci_bot("review", *both, directory=tmp_path))[0].endswith(
        "and `one` and `two` are in different ones."
    )


@pytest.mark.parametrize("broken", ["loop", "file", "long", "closed"])
@pytest.mark.by_day(2)
def test_project__that_is_no_directory__is_told_with_its_name(tmp_path: Path, broken: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("x")
    name = "x" * 5_000 if broken == "long" else broken
    says = {
        "loop": "`loop` cannot be opened: Too many levels of symbolic links.",
        "file": "`file` is not a directory.",
        "long": "cannot be opened: File name too long.",
        "closed": "`closed` does not exist.",
    }
    ran = ci_bot("review", "--project", name, directory=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert told(ran)[0].endswith(says[broken])
    assert len(told(ran)[0]) < 400


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("file", "a file is in the way"),
        ("file/below", "a file is in the way"),
        ("loop", "Too many levels of symbolic links"),
        ("n" * 300, "File name too long"),
        ("/proc/nothing", "No such file or directory"),
    ],
)
@pytest.mark.by_day(1)
def test_output__that_cannot_be_written__is_told_before_anything_is_done(
    tmp_path: Path, output: str, says: str
) -> None:
    """Told at the end, it would take the report of an apply with it."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "project").mkdir()
    for command in (REVIEW, APPLY, ("cleanup", "--project", ".", "--environment", "pr_9")):
        line = (command[0], "--project", "project", *command[3:], "--output", output)
        ran = ci_bot(*line, directory=tmp_path)
        assert (ran.code, ran.out) == (2, "")
        first, second = told(ran)
        assert f"/{output.lstrip('/')}: {says}." in first
        assert "`--output`" in second
    assert (tmp_path / "file").read_text() == "x"


def test_current_directory__that_is_gone__is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f"cd '{gone}' && rmdir '{gone}' && exec '{sys.executable}' -m ci_bot review --project ."
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "ci-bot: The current directory does not exist any more."


# --- tracebacks -----------------------------------------------------------------------------------


@pytest.mark.night
@pytest.mark.parametrize("verbose", [(), ("--verbose",)])
@pytest.mark.parametrize("before_the_command", [True, False])
def test_traceback__of_a_model_that_does_not_load__is_for_those_who_ask(
    duck: Shop, verbose: tuple[str, ...], before_the_command: bool
) -> None:
    duck.write("models/revenue.sql", "MODEL (name shop.revenue); SELEC 1")
    line = (*verbose, *REVIEW) if before_the_command else (*REVIEW, *verbose)
    ran = ci_bot(*line, directory=duck.project)
    assert ran.code == 1
    assert "There is no plan: the project does not load." in ran.out
    assert "models/revenue.sql" in ran.out
    assert ("Traceback (most recent call last)" in ran.err) == bool(verbose)
    assert "Traceback" not in ran.out


@pytest.mark.night
def test_traceback__that_the_project_prints__is_folded_to_its_last_line(duck: Shop) -> None:
    duck.write(
        "macros/noisy.py",
        "import sys, traceback\ntry:\n    raise ValueError('of the project')\n"
        "except ValueError:\n    traceback.print_exc()\nprint('after it')\n",
    )
    quiet = ci_bot(*REVIEW, directory=duck.project)
    assert "Traceback" not in quiet.err
    assert "ValueError: of the project\nafter it\n" in quiet.err
    loud = ci_bot("--verbose", *REVIEW, directory=duck.project)
    assert "Traceback (most recent call last):\n" in loud.err


def test_file_name__that_is_no_utf8__is_a_finding_and_no_crash(duck: Shop) -> None:
    name = os.fsdecode(b"caf\xe9.sql")
    (duck.project / "models" / name).write_text("MODEL (name shop.cafe); SELEC 1")
    ran = ci_bot(*REVIEW, directory=duck.project)
    assert ran.code == 1, ran.err
    assert "models/caf\ufffd.sql:1" in ran.out
    assert "Traceback" not in ran.err
