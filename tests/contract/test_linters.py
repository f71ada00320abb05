"""zizmor, hadolint and check-jsonschema over everything they know, with no finding.

Each also gets a file that is wrong, so that a linter which has stopped looking is noticed.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted([*GITHUB.glob("workflows/*.yml"), *GITHUB.glob("examples/*.yml")])
ACTIONS = [ROOT / "action.yml", ROOT / "review" / "action.yml"]
FORMS = sorted(set(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"})
ZIZMOR = ("zizmor", "--offline", "--persona=auditor", "--no-progress", "--color=never")
SCHEMA = ("check-jsonschema", "--builtin-schema")


def lint(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a linter that was installed beside this interpreter."""
    program = shutil.which(command[0], path=sysconfig.get_path("scripts"))
    assert program, f"{command[0]} is missing; install requirements-dev.lock"
    return subprocess.run(
        [program, *command[1:]], cwd=cwd, capture_output=True, text=True, check=False
    )


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor__finds_nothing() -> None:
    # Named one by one: a directory search looks below .github/workflows only.
    files = [*WORKFLOWS, ROOT / ".github" / "dependabot.yml", *ACTIONS]
    assert len(files) == 11
    assert_clean(lint(*ZIZMOR, *map(str, files)))


def test_zizmor__notices_a_tag_instead_of_a_commit(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "examples" / "review.yml").read_text("utf-8")
    wrong = tmp_path / "review.yml"
    wrong.write_text(text.replace("3d3c42e5aac5ba805825da76410c181273ba90b1", "v7"), "utf-8")
    done = lint(*ZIZMOR, str(wrong))
    assert done.returncode != 0
    assert "unpinned-uses" in done.stdout


def test_zizmor__every_ignored_finding_has_its_reason() -> None:
    ignored = [
        line.split("zizmor: ignore", 1)[1]
        for path in WORKFLOWS
        for line in path.read_text("utf-8").splitlines()
        if "zizmor: ignore" in line
    ]
    assert len(ignored) == 3
    for rest in ignored:
        rule, _, reason = rest.partition("] ")
        assert rule == "[dangerous-triggers"
        assert len(reason.split()) > 3


def test_hadolint__finds_nothing() -> None:
    assert_clean(lint("hadolint", "Dockerfile"))


def test_hadolint__notices_a_floating_package(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert "git=1:2.39.*" in text
    (tmp_path / "Dockerfile").write_text(text.replace("git=1:2.39.*", "git"), "utf-8")
    shutil.copy(ROOT / ".hadolint.yaml", tmp_path)
    done = lint("hadolint", "Dockerfile", cwd=tmp_path)
    assert done.returncode != 0
    assert "DL3008" in done.stdout


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.github-actions", ACTIONS),
        ("vendor.dependabot", [ROOT / ".github" / "dependabot.yml"]),
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ],
)
def test_schema__is_kept(schema: str, files: list[Path]) -> None:
    assert files
    assert_clean(lint(*SCHEMA, schema, *map(str, files)))


def test_schema__notices_an_unknown_key(tmp_path: Path) -> None:
    wrong = tmp_path / "action.yml"
    wrong.write_text((ROOT / "action.yml").read_text("utf-8") + "surprise: true\n", "utf-8")
    assert lint(*SCHEMA, "vendor.github-actions", str(wrong)).returncode != 0


def test_hooks__are_the_locked_tools_and_fetch_nothing() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    (repository,) = YAML(typ="safe").load(text)["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        program, *_ = hook["entry"].split()
        assert hook["language"] == "system"
        assert program.startswith(".venv/bin/")
        locked = (ROOT / "requirements-dev.lock").read_text("utf-8")
        assert f"\n{Path(program).name}==" in locked
