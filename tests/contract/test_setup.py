"""What `ci-bot init` writes is clean for the linters, for every layout and level, and one source
with the examples, the rights script of docs/state.md, and the image."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from datetime import date
from importlib import metadata
from pathlib import Path

import pytest

from ci_bot.bot.cli.commands import command_group
from ci_bot.bot.cli.setup.plan_files import IMAGE_PYSPARK, IMAGE_PYTHON, IMAGE_SQLMESH
from ci_bot.bot.cli.setup.read_repository import IMAGE_MODULES
from ci_bot.bot.cli.setup.setup_command import load_setup_template
from ci_bot.bot.policy import list_rules_that_policy_may_weigh, read_policy
from ci_bot.bot.policy.document import PolicyFile
from tests.contract.test_actionlint import NOT_KNOWN_YET, found, program
from tests.contract.test_linters import SCHEMA, ZIZMOR, assert_clean, lint
from tests.example_workflows import EXAMPLES, example_workflows
from tests.setup_layouts import LAYOUTS, clone

__all__ = ["program"]

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = {"several": ("sales", "finance")}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The workflows of every layout and level."""
    files: list[Path] = []
    for layout in LAYOUTS:
        for level in ("review", "apply", "full"):
            root = tmp_path_factory.mktemp("repository")
            clone(root, layout).init(level=level, projects=PROJECTS.get(layout, ()))
            files += sorted((root / ".github" / "workflows").glob("*.yml"))
    made = [path for path in files if "Made by `ci-bot init" in path.read_text("utf-8")]
    assert len(made) == 9 * len(LAYOUTS)
    return made


def test_written__zizmor_finds_nothing(written: list[Path]) -> None:
    assert_clean(lint(*ZIZMOR, *map(str, written)))


def test_written__keeps_the_schema_of_workflows(written: list[Path]) -> None:
    assert_clean(lint(*SCHEMA, "vendor.github-workflows", *map(str, written)))


def test_written__actionlint_finds_nothing_but_the_key_that_it_does_not_know(
    written: list[Path], program: Path
) -> None:
    lines = found(program, *written)
    assert [line for line in lines if NOT_KNOWN_YET not in line] == []


def test_written__has_no_sign_of_a_template(written: list[Path]) -> None:
    for path in written:
        assert not re.search(r"<%|%>|#%|\n\n\n", path.read_text("utf-8")), path


def test_examples__are_what_init_writes_for_the_company() -> None:
    stored = {path.name: path.read_text("utf-8") for path in EXAMPLES.glob("*.yml")}
    assert stored == example_workflows(), "python -m tests.example_workflows"


def test_rights__are_those_of_the_document() -> None:
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "state.md").read_text("utf-8"), re.S)
    scripts = [load_setup_template(f"rights-{engine}.sql") for engine in ("postgres", "mysql")]
    assert scripts == blocks


def test_image__has_the_versions_that_init_knows() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert f"\nsqlmesh=={IMAGE_SQLMESH} " in lock
    assert f"\npyspark=={IMAGE_PYSPARK} " in lock
    assert f"\nARG PYTHON_VERSION={IMAGE_PYTHON}\n" in (ROOT / "Dockerfile").read_text("utf-8")


def test_image__has_the_modules_that_init_takes_to_be_there() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = {normalized(name) for name in re.findall(r"(?m)^([\w.-]+)==", lock)}
    packages = metadata.packages_distributions()
    for module in IMAGE_MODULES:
        assert {normalized(name) for name in packages[module]} & locked, module


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_policy__of_init_is_one_and_so_are_the_examples_in_it() -> None:
    def read(text: str) -> PolicyFile:
        return read_policy(
            text.encode(),
            path="x",
            rules=list_rules_that_policy_may_weigh(),
            today=date(2026, 1, 1),
        )

    text = load_setup_template("sqlmesh-review.yaml") or ""
    _, _, examples = text.partition("version: 1\n")
    assert read(text) == read("version: 1\n")
    switched_on = read("version: 1\n" + re.sub(r"(?m)^# ?", "", examples))
    assert len(switched_on.severity) == len(switched_on.owners) == 1


def test_steps__are_lines_that_a_shell_reads(tmp_path: Path) -> None:
    told = clone(tmp_path, "company").init(level="full")
    lines = [
        line for line in told.splitlines() if line.startswith(("gh ", "git ", "echo ", "ci-bot "))
    ]
    assert len(lines) > 20
    for line in lines:
        words = shlex.split(line)
        if words[0] == "ci-bot":
            command_group.commands[words[1]].make_context(words[1], words[2:])
        done = subprocess.run(["/bin/bash", "-n", "-c", line], check=False, env=dict(os.environ))
        assert done.returncode == 0, line
