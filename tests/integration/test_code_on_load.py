"""Which changed files count as code that ran on load: real reviews in the real worker process."""

from __future__ import annotations

import sysconfig
import zipfile
from pathlib import Path

import pytest

from ci_bot.protocol.review_report import Report
from tests import nights
from tests.conftest import missing
from tests.projects.duck import run_prod
from tests.projects.repository import Files, Repository, write_repository
from tests.worker import Client

MACRO = """\
import sys
from pathlib import Path

HERE = Path(__file__).parents[2]
sys.path[:0] = [str(HERE), str(HERE / "lib.zip")]

from sqlmesh import macro
{imports}


@macro()
def rate(evaluator):
    return 1
"""
REVENUE = "SUM(o.amount) AS BIGINT) AS revenue"


def with_macro(root: Path, imports: str, files: Files) -> Repository:
    """The repository, whose revenue uses a macro that imports something."""
    repository = write_repository(root, {"project/macros/__init__.py": "", **files})
    sql = repository.read("project/models/revenue.sql")
    repository.commit(
        {
            "project/macros/rate.py": MACRO.format(imports=imports),
            "project/models/revenue.sql": sql.replace("SUM(o.amount)", "SUM(o.amount * @rate())"),
        }
    )
    return repository


def review(
    repository: Repository, files: Files, baseline: str = "base-branch"
) -> tuple[Report, frozenset[str] | None]:
    """The report on a pull request, and what of it was opened on load."""
    commits = repository.change(files)
    client = Client(repository.root, projects=("project",))
    report = client.review("pr_1", commits=commits, baseline=baseline)
    return report, client.loaded


def on_load(report: Report) -> str | None:
    return next((risk.evidence for risk in report.risks if risk.rule == "R12-code-on-load"), None)


def zipped(tmp_path: Path, source: str) -> bytes:
    path = tmp_path.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("packed.py", source)
    return path.read_bytes()


def native_module() -> Path:
    """A module of Python's own that lies in a file."""
    found = sorted(Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("_*.so"))
    if not found:
        missing("this Python has no native module in a file of its own")
    return found[0]


def test_what_was_loaded_counts__wherever_it_lies(tmp_path: Path) -> None:
    native = native_module()
    name = native.name.split(".")[0]
    repository = with_macro(
        tmp_path,
        f"from shared import helper\nfrom native import {name}\nimport packed\nimport pickle\n"
        "RATES = pickle.loads((HERE / 'rates.pkl').read_bytes())\n"
        "import site; site.addsitedir(str(HERE / 'site'))\n",
        {
            "shared/__init__.py": "",
            "shared/helper.py": "RATE = 1\n",
            "native/__init__.py": "",
            f"native/{name}.py": "VALUE = 1\n",
            "lib.zip": zipped(tmp_path, "VALUE = 1"),
            "rates.pkl": b"\x80\x04K\x01.",
            "site/extra.pth": "# nothing\n",
            "dags/daily.py": "x = 1\n",
            "project/scripts/tool.py": "x = 1\n",
            "services/requirements.txt": "requests\n",
        },
    )
    shared = {"shared/helper.py": "RATE = 2\n", "rates.pkl": b"\x80\x04K\x02."}
    loaded_files: Files = {
        **shared,
        f"native/{name}.abi3.so": native.read_bytes(),  # goes before the module in Python
        "lib.zip": zipped(tmp_path, "VALUE = 2"),
        "site/extra.pth": "# something\n",
    }
    other: Files = {
        "dags/daily.py": "x = 2\n",
        "project/scripts/tool.py": "x = 2\n",
        "services/requirements.txt": "requests\nurllib3\n",
        "README.md": "# Read me\n",
    }

    report, loaded = review(repository, {**loaded_files, **other})

    assert report.failure is None
    assert loaded == frozenset(loaded_files)
    told = on_load(report)
    assert told is not None and "`lib.zip`" in told and "daily" not in told
    assert report.decision != "go"


def test_model_that_changes_through_a_module_elsewhere__is_the_pull_requests_own(
    tmp_path: Path,
) -> None:
    repository = with_macro(
        tmp_path,
        "from shared.helper import RATE",
        {"shared/__init__.py": "", "shared/helper.py": "RATE = 1\n"},
    )
    macro = repository.read("project/macros/rate.py").replace("return 1", "return RATE")
    repository.commit({"project/macros/rate.py": macro})

    report, _ = review(repository, {"shared/helper.py": "RATE = 2\n"})

    assert {change.model: change.from_base for change in report.changes if not change.from_base}
    assert not any(change.from_base for change in report.changes)


def test_what_was_never_loaded__is_no_code_on_load(tmp_path: Path) -> None:
    repository = with_macro(
        tmp_path, "from shared import helper", {"shared/__init__.py": "", "shared/helper.py": ""}
    )

    report, loaded = review(
        repository,
        {
            "dags/daily.py": "x = 1\n",
            "shared/unused.py": "x = 1\n",
            "conftest.py": "x = 1\n",
            "sitecustomize.py": "x = 1\n",
            "project/sitecustomize.py": "x = 1\n",
            "shared/helper.py": "# a comment and no more\n",
        },
    )

    assert loaded == {"shared/helper.py"}
    assert on_load(report) is None
    assert report.decision == "no_changes"


def test_base_branchs_files__are_not_taken_for_the_heads(tmp_path: Path) -> None:
    """The same worker loads both; only the base imports `old`, and both change."""
    repository = with_macro(
        tmp_path,
        "from shared import old",
        {"shared/__init__.py": "", "shared/old.py": "X = 1\n", "shared/new.py": "X = 1\n"},
    )

    report, loaded = review(
        repository,
        {
            "project/macros/rate.py": MACRO.format(imports="from shared import new"),
            "shared/old.py": "X = 2\n",
            "shared/new.py": "X = 2\n",
        },
    )

    assert report.failure is None
    assert loaded == {"project/macros/rate.py", "shared/new.py"}


LIE = """\
import os
import sys

# The bot must not learn of this file: close what might tell it, and say something else.
for number in range(3, 64):
    try:
        os.write(number, {words!r} * {times})
    except OSError:
        pass
sys.modules["ci_bot.worker.runtime.load_trace"] = None
"""


LIES = {
    "of a file that is none": (b"f/nothing\0", 1, True),
    "in no known words": (b"garbage\0", 1, False),
    "without an end": (b"f/x\0", 600_000, False),
}


@pytest.mark.parametrize("lie", nights.cases(LIES, by_day=["in no known words"]))
def test_code_that_lies__is_on_the_list_already(
    tmp_path: Path, lie: tuple[bytes, int, bool]
) -> None:
    words, times, known = lie
    repository = with_macro(
        tmp_path, "from shared import helper", {"shared/__init__.py": "", "shared/helper.py": ""}
    )

    report, loaded = review(
        repository,
        {"shared/helper.py": LIE.format(words=words, times=times), "dags/daily.py": "x = 1\n"},
    )

    told = on_load(report)
    assert told is not None and "`shared/helper.py`" in told
    # Where nothing is known, all code that has changed counts.
    assert ("`dags/daily.py`" in told) is not known
    assert ("it is not known which files" in told) is not known
    assert loaded == ({"shared/helper.py"} if known else None)
    assert report.decision in ("review", "no_go")


SILENCED = """\
from ci_bot.worker.review import rule_inputs

rule_inputs.judge_plan = lambda *_args, **_kwargs: []
"""


@pytest.mark.night
def test_code_that_silences_the_judge_of_statements__does_not_reach_the_scan(
    tmp_path: Path,
) -> None:
    """What stands in the file was read before that code ran, and counts where it did."""
    repository = with_macro(
        tmp_path, "from shared import helper", {"shared/__init__.py": "", "shared/helper.py": ""}
    )
    sql = repository.read("project/models/revenue.sql")
    written = {
        "project/models/revenue.sql": f"{sql.rstrip().rstrip(';')};\n\nDROP TABLE prod.keep;\n"
    }

    lying, _ = review(repository, {**written, "shared/helper.py": SILENCED})

    (told,) = [risk for risk in lying.risks if risk.rule == "destructive-statement"]
    assert (told.severity, told.path) == ("blocker", "project/models/revenue.sql")
    assert "as the file has it: it drops `prod.keep`" in told.evidence
    assert lying.decision == "no_go"


def test_statement_of_a_plan_that_can_be_believed__is_told_once(tmp_path: Path) -> None:
    repository = write_repository(tmp_path)
    sql = repository.read("project/models/revenue.sql")
    written = {
        "project/models/revenue.sql": f"{sql.rstrip().rstrip(';')};\n\nDROP TABLE prod.keep;\n"
    }

    report, _ = review(repository, written)

    (told,) = [risk for risk in report.risks if risk.rule == "destructive-statement"]
    assert "as the file has it" not in told.evidence


def test_program_that_reads_files_itself__makes_all_changed_code_count(tmp_path: Path) -> None:
    repository = with_macro(
        tmp_path,
        "import subprocess\nsubprocess.run([sys.executable, str(HERE / 'generate.py')], check=True)",
        {"generate.py": "import steps\n", "steps.py": "x = 1\n"},
    )

    report, loaded = review(repository, {"steps.py": "x = 2\n", "README.md": "# Read me\n"})

    assert loaded is None
    told = on_load(report)
    assert told is not None and "`steps.py`" in told and "README" not in told


@pytest.mark.night
def test_against_prods_state__the_same(tmp_path: Path) -> None:
    repository = with_macro(
        tmp_path, "from shared import helper", {"shared/__init__.py": "", "shared/helper.py": ""}
    )
    run_prod(repository.shop, "2024-01-11")

    report, loaded = review(
        repository, {"shared/helper.py": "X = 2\n", "dags/daily.py": "x = 1\n"}, "state"
    )

    assert report.failure is None
    assert report.baseline == "state"
    assert loaded == {"shared/helper.py"}
    assert on_load(report) is not None


@pytest.mark.night
def test_forked_loaders__tell_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_FORK_WORKERS", "2")
    repository = with_macro(tmp_path, "", {})
    jinja = "JINJA_QUERY_BEGIN;\nSELECT '{{ 1.__class__ }}' AS two\nJINJA_END;\n"

    report, loaded = review(
        repository, {"project/models/two.sql": f"MODEL (name shop.two, kind FULL);\n{jinja}"}
    )

    assert loaded == {"project/models/two.sql"}
    assert on_load(report) is not None


# ---------------------------------------------------------------- SQL that would run as Python


def payload(path: Path) -> str:
    return f"`a' + (str(__import__('pathlib').Path('{path}').touch()) and '') + 'b`"


@pytest.mark.parametrize("baseline", nights.cases(["base-branch", "state"], by_day=["base-branch"]))
def test_sql_that_runs_as_python__is_no_go_and_nothing_runs(tmp_path: Path, baseline: str) -> None:
    repository = write_repository(tmp_path)
    if baseline == "state":
        run_prod(repository.shop, "2024-01-11")
    ran = tmp_path / "ran"
    text = (
        repository.read("project/models/revenue.sql")
        .replace(REVENUE, f"{REVENUE},\n  @IF({payload(ran)} IS NULL, 1, 1) AS x")
        .replace("kind FULL", "kind FULL,\n  dialect spark")
    )

    report, _ = review(repository, {"project/models/revenue.sql": text}, baseline)

    assert not ran.exists()
    assert report.decision == "no_go"
    line = text[: text.index("@IF")].count("\n") + 1
    assert [
        (risk.path, risk.line, risk.severity)
        for risk in report.risks
        if risk.rule == "macro-runs-python"
    ] == [("project/models/revenue.sql", line, "blocker")]
    assert report.failure is not None
    assert report.failure.message.startswith("An argument of a macro would run as Python")
    assert "Do not load this branch" in (report.failure.hint or "")


MADE_LATER = {
    "by a variable of the configuration": (
        {"project/config.yaml": "variables:\n  word: \"{0}\"\n"},
        "@EVAL(@SQL(@word))",
    ),
    "by a template in an identifier": (
        {"project/config.yaml": "variables:\n  word: \"' + str({0}) + '\"\n"},
        "@EVAL(\"a@{word}b\")",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "later", nights.cases(MADE_LATER, by_day=["by a template in an identifier"])
)
def test_sql_that_becomes_python_while_macros_run__never_runs(
    tmp_path: Path, later: tuple[dict[str, str], str]
) -> None:
    files, argument = later
    repository = write_repository(tmp_path)
    ran = tmp_path / "ran"
    call = f"exp.open('{ran}', 'w')" if "SQL" in argument else f"open('{ran}', 'w')"
    changed = {name: repository.read(name) + text.format(call) for name, text in files.items()}
    text = repository.read("project/models/revenue.sql").replace(
        REVENUE, f"{REVENUE},\n  {argument} AS x"
    )

    report, _ = review(repository, {**changed, "project/models/revenue.sql": text})

    assert not ran.exists()
    assert report.decision == "no_go"
    assert report.failure is not None
    assert "would run as Python" in report.failure.message
