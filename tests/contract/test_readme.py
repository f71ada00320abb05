"""README, SECURITY.md and docs say what is there: commands, exit codes, scripts, links, packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from ci_bot import __version__, errors
from ci_bot.bot.actions.comment_command import USAGE
from ci_bot.bot.cli.commands import command_group
from ci_bot.bot.report import words
from ci_bot.bot.report.model import lineage
from ci_bot.bot.sandbox.start_command import NEVER_PREFIXES
from tests import reference_page

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = reference_page.PAGE.read_text("utf-8")
THREAT_MODEL = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
# Each page of the site but those of the rules, which `test_rules` holds.
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
PAGES = [
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "tests/README.md",
    "tests/corpus/README.md",
    *DOCS,
]
EXAMPLES = ROOT / ".github" / "examples"
# What a README may take of its reader's time.
MOST_BYTES = 10_000
MOST_WORDS = 1_500
# Which rows of the table of permissions are about which example, one for each of its jobs.
ACTIVITIES = {
    "review.yml": ("review",),
    "apply.yml": ("apply, probe",),
    "cleanup.yml": ("cleanup, sweep", "drift"),
    "comments.yml": ("commands", "fork comment"),
}


def section(text: str, title: str) -> str:
    """The lines below a heading, up to the next one of its level or above."""
    match = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert match, f"there is no section {title!r}"
    rest = text[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows, without header and rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    rules = [number for number, row in enumerate(cells) if set("".join(row)) <= {"-"}]
    return [row for number, row in enumerate(cells) if number not in rules + [n - 1 for n in rules]]


def code_blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """A page without its code blocks, in which `#` starts no heading and `[` no link."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def program(name: str) -> str:
    """A program that was installed beside this interpreter."""
    found = shutil.which(name, path=sysconfig.get_path("scripts"))
    assert found, f"{name} is missing; install requirements-dev.lock"
    return found


def test_commands__are_those_of_the_command_line() -> None:
    told = [row[0].strip("`").split()[1] for row in rows(section(REFERENCE, "Commands"))]
    assert sorted(told) == sorted(command_group.commands)


def test_commands__their_options_exist() -> None:
    checked = 0
    for row in rows(section(REFERENCE, "Commands")):
        name = row[0].strip("`").split()[1]
        known = {option for item in command_group.commands[name].params for option in item.opts}
        for option in re.findall(r"--[a-z-]+", row[0]):
            assert option in known, f"ci-bot {name} has no {option}"
            checked += 1
    assert checked


def test_words__that_pages_link_to_are_explained() -> None:
    words = rows(section(REFERENCE, "Words"))
    assert len(words) == 8
    assert all(len(row) == 2 and row[1].endswith(".") for row in words)
    texts = [(ROOT / page).read_text("utf-8") for page in DOCS]
    linked = {
        word for text in texts for word in re.findall(r"\[([a-z ]+)\]\([a-z.]*#words\)", text)
    }
    told = " ".join(row[0] for row in words)
    assert len(linked) > 1
    for word in linked - {"reference"}:
        assert word.removesuffix("s") in told, word


def test_comment_commands__are_those_that_are_understood() -> None:
    block = next(text for text in code_blocks(README, "text") if "/sqlmesh" in text)
    told = [re.split(r" {2,}", line)[0] for line in block.splitlines()]
    assert told == list(USAGE)


def test_exit_codes__each_has_its_meaning() -> None:
    codes = {value for value in vars(errors).values() if isinstance(value, int)}
    assert set(errors.EXIT_CODES) == codes


def test_reference__is_made_of_what_is_declared() -> None:
    assert reference_page.render_page(REFERENCE) == REFERENCE, (
        "run `python -m tests.reference_page`"
    )


def test_reference__groups_each_input_once() -> None:
    grouped = [name for names in reference_page.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(reference_page.read_action()["inputs"])


def test_readme__is_read_in_minutes() -> None:
    assert len(README.encode()) <= MOST_BYTES
    assert len(README.split()) <= MOST_WORDS


def test_readme__shows_ten_inputs_with_their_defaults() -> None:
    declared = reference_page.read_action()["inputs"]
    shown = rows(section(README, "Inputs"))
    assert len(shown) == 10
    for name, default, meaning in shown:
        real = declared[name.strip("`")]["default"]
        assert meaning, name
        assert default == f"`{real}`" if real else True, name


def test_permissions__are_those_of_the_examples() -> None:
    table = {row[0]: row[1] for row in rows(section(REFERENCE, "Permissions"))}
    for name, activities in ACTIVITIES.items():
        jobs = YAML(typ="safe").load((EXAMPLES / name).read_text("utf-8"))["jobs"].values()
        given = [{f"{k}: {v}" for k, v in job.get("permissions", {}).items()} for job in jobs]
        # GitHub's own cache and artifacts take none; the checkout takes `contents`.
        said = [set(re.findall(r"`([a-z-]+: [a-z]+)`", table[row])) for row in activities]
        assert [one for one in given if one] == said, name


def test_permissions__of_the_readme_are_those_of_the_reference() -> None:
    full = {row[0].split(",")[0]: row[1] for row in rows(section(REFERENCE, "Permissions"))}
    for activity, token, *_ in rows(section(README, "Permissions")):
        assert set(re.findall(r"`([^`]+)`", token)) <= set(
            re.findall(r"`([^`]+)`", full[activity.split(",")[0]])
        ), activity


@pytest.mark.parametrize("page", DOCS)
def test_page__is_in_the_list_of_all_pages_and_says_what_it_is_for(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    title, _, first, *_ = text.splitlines()
    assert title.startswith("# ")
    assert first[:1].isalpha() or first[:1] == "[", "a page begins with what it is about"
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert page == "docs/README.md" or f"]({Path(page).name})" in index


@pytest.mark.parametrize("page", PAGES)
def test_links__lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text("utf-8")), target


@pytest.mark.parametrize("page", PAGES)
def test_scripts__exist_and_can_be_run(page: str) -> None:
    for block in code_blocks((ROOT / page).read_text("utf-8"), "bash"):
        for script in re.findall(r"(?:^|\s)(\.ci/[\w.-]+)", block):
            assert (ROOT / script).stat().st_mode & 0o100, script


def test_two_commands__set_up_and_run() -> None:
    first, second = code_blocks(section(README, "Try it"), "bash")
    assert [first.strip(), second.strip()] == ["bash .ci/demo", "bash .ci/test"]
    for script in (first.split()[1], second.split()[1]):
        assert ".ci/setup.sh" in (ROOT / script).read_text("utf-8")


def test_picture__is_one() -> None:
    (picture,) = re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", README)
    content = (ROOT / picture).read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) < 500_000


def test_examples__are_all_linked() -> None:
    linked = set(re.findall(r"\]\(\.github/examples/([\w-]+\.yml)\)", README))
    assert linked == {path.name for path in EXAMPLES.glob("*.yml")}


@pytest.fixture
def smallest_workflow(tmp_path: Path) -> Path:
    """The workflow that stands in the README, as a file where GitHub would look for it."""
    (text,) = code_blocks(README, "yaml")
    path = tmp_path / ".github" / "workflows" / "review.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf-8")
    return path


def test_smallest_workflow__is_a_workflow(smallest_workflow: Path) -> None:
    command = [program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run(
        [*command, str(smallest_workflow)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_smallest_workflow__is_safe(smallest_workflow: Path) -> None:
    command = [
        program("zizmor"),
        "--offline",
        "--persona=auditor",
        "--no-progress",
        "--color=never",
    ]
    done = subprocess.run(
        [*command, str(smallest_workflow)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_smallest_workflow__is_the_example_without_secrets(smallest_workflow: Path) -> None:
    def load(path: Path) -> Any:
        return YAML(typ="safe").load(path.read_text("utf-8"))

    small, full = load(smallest_workflow), load(EXAMPLES / "review.yml")
    job, whole = small["jobs"]["review"], full["jobs"]["review"]
    # `edited` takes a job with two names and a group for each; see the example.
    types = [each for each in full["on"]["pull_request"]["types"] if each != "edited"]
    assert small["on"] == {"pull_request": {"types": types}}
    assert job["permissions"] == whole["permissions"]
    used = [step["uses"] for step in job["steps"]]
    # It has no state to compare with, so nothing that a cache could spare it.
    steps = [step["uses"] for step in whole["steps"] if "/cache/" not in step["uses"]]
    assert used == steps[: len(used)]
    # Nobody starts the small one by hand, so it needs no ref.
    checkout = {name: given for name, given in whole["steps"][0]["with"].items() if name != "ref"}
    assert job["steps"][0]["with"] == checkout
    assert job["steps"][1]["with"]["baseline"] == "base-branch"
    assert "secrets." not in smallest_workflow.read_text("utf-8")


def test_dependencies__each_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    groups = project["dependency-groups"].values()
    declared = [*project["project"]["dependencies"], *chain(*extras, *groups)]
    wanted = {re.split(r"[<>=\[ ]", text)[0].lower() for text in declared}
    table = rows(section((ROOT / "CONTRIBUTING.md").read_text("utf-8"), "Dependencies"))
    told = {name.lower() for row in table for name in re.findall(r"`([\w-]+)`", row[0])}
    assert wanted <= told, f"no line for {sorted(wanted - told)}"
    assert all(row[1] for row in table)


def test_changelog__knows_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\] - ", text, re.MULTILINE)
    assert "## [Unreleased]" in text


def test_security__names_what_the_worker_never_sees() -> None:
    for text in (THREAT_MODEL, (ROOT / "SECURITY.md").read_text("utf-8")):
        for prefix in NEVER_PREFIXES:
            assert f"`{prefix}*`" in text, prefix


def test_comment_page__explains_each_symbol() -> None:
    page = (ROOT / "docs" / "reading-the-comment.md").read_text("utf-8")
    legend = [text.split()[0] for text in lineage.LEGEND.values()]
    symbols = [*words.DECISION_ICONS.values(), *words.SEVERITY_ICONS.values(), *legend]
    for path in (ROOT / "templates").glob("*.md.j2"):
        for heading in re.findall(r"^## (.*)$", path.read_text("utf-8"), re.MULTILINE):
            symbols += re.findall("[\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]", heading)
    assert len(set(symbols)) > 15
    assert {symbol for symbol in symbols if symbol not in page} == set()


def test_tests_readme__knows_every_marker_level_and_variable() -> None:
    text = (ROOT / "tests" / "README.md").read_text("utf-8")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for marker in settings["tool"]["pytest"]["ini_options"]["markers"]:
        assert f"`{marker.split(':')[0]}`" in text, marker
    for row in rows(section(text, "Four levels")):
        for place in re.findall(r"`([^`]+)`", row[1]):
            assert list((ROOT / "tests").glob(place)), place
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / ".ci").glob("*")]
    read = {
        name
        for path in sources
        if path.is_file()
        for name in re.findall(r"CI_BOT_(?:REQUIRE|TEST|FUZZ)\w*", path.read_text("utf-8"))
    }
    assert {name for name in read if f"`{name}`" not in text} == set()
