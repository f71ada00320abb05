"""The Dockerfile's promises that can be read off its text; tests/container has the others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIGEST = r"@sha256:[0-9a-f]{64}"
LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    ".ci/image/requirements-build.lock",
]


@pytest.fixture(scope="module")
def instructions() -> list[str]:
    """The Dockerfile's instructions, each on one line, without comments."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [line for line in "\n".join(kept).replace("\\\n", " ").splitlines() if line.strip()]


def test_base__is_debian_bookworm_slim_by_digest(instructions: list[str]) -> None:
    assert re.fullmatch(rf"ARG BASE_IMAGE=debian:bookworm-slim{DIGEST}", instructions[0])


def test_base__no_stage_is_built_on_anything_else(instructions: list[str]) -> None:
    stages: set[str] = set()
    for line in instructions:
        if line.startswith("FROM "):
            _, source, *name = line.split()
            assert source == "${BASE_IMAGE}" or source in stages, line
            stages.update(name[1:])


def test_entry_point__is_pythons_full_path_in_exec_form_and_isolated(
    instructions: list[str],
) -> None:
    (entry,) = [line for line in instructions if line.startswith("ENTRYPOINT ")]
    command = json.loads(entry.removeprefix("ENTRYPOINT "))
    assert command[0].startswith("/")
    assert "-I" in command
    assert command[-2:] == ["-m", "ci_bot"]
    assert 'CMD ["run"]' in instructions


def test_final_stage__starts_as_root_and_installs_nothing(instructions: list[str]) -> None:
    last = max(index for index, line in enumerate(instructions) if line.startswith("FROM "))
    final = instructions[last:]
    assert [line for line in final if line.startswith("USER ")] == ["USER 0:0"]
    assert not [line for line in final if line.startswith(("RUN ", "ADD "))]
    assert all("--from=" in line for line in final if line.startswith("COPY "))


def test_root__the_waiver_has_its_reason_above_it() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    waivers = [index for index, line in enumerate(lines) if "hadolint ignore=" in line]
    assert [lines[index] for index in waivers] == ["# hadolint ignore=DL3002"]
    for index in waivers:
        assert lines[index - 1].startswith("# "), "say why, right above"


def test_worker__has_the_same_number_everywhere(instructions: list[str]) -> None:
    text = "\n".join(instructions)
    assert re.findall(r"(?:--uid|--gid|\"uid\":|\"gid\":) (\d+)", text) == ["10001"] * 5


def test_apt__every_package_is_pinned_to_its_release_line(instructions: list[str]) -> None:
    installs = re.findall(
        r"apt-get install --yes --no-install-recommends (.+?)(?:&&|$)", "\n".join(instructions)
    )
    packages = " ".join(installs).split()
    assert len(installs) == sum(line.count("apt-get install") for line in instructions)
    assert packages
    assert [name for name in packages if "=" not in name] == []


def test_pip__takes_only_locked_wheels_or_what_it_has_built(instructions: list[str]) -> None:
    calls = re.findall(r"/bin/pip (.+?)(?:;|&&|$)", "\n".join(instructions))
    assert len(calls) == 5
    for call in calls:
        assert "--require-hashes" in call or "--no-index" in call, call


@pytest.mark.parametrize("name", LOCKS)
def test_lock__every_package_has_one_version_and_a_hash(name: str) -> None:
    entries = re.split(r"\n(?=[a-z0-9])", (ROOT / name).read_text("utf-8"))
    _header, *packages = entries
    assert packages
    for package in packages:
        assert re.match(r"[a-z0-9.\[\],-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", package)


@pytest.mark.parametrize("name", LOCKS)
def test_lock__names_no_place_to_download_from(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index-url|--extra-index-url|--find-links)\b", text, re.M)


@pytest.mark.parametrize("name", LOCKS)
def test_lock__says_how_it_was_made(name: str) -> None:
    second_line = (ROOT / name).read_text("utf-8").splitlines()[1]
    assert second_line.startswith("#    uv pip compile ")
    assert second_line.endswith(f" -o {name}")


def test_lock__tests_run_on_what_the_image_has() -> None:
    def versions(name: str) -> dict[str, str]:
        text = (ROOT / name).read_text("utf-8")
        return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.M))

    image = versions("requirements.lock")
    # .ci/setup.sh installs both.
    tests = versions(".ci/image/requirements-build.lock") | versions("requirements-dev.lock")
    assert {name: tests.get(name) for name in image if name != "pip"} == {
        name: version for name, version in image.items() if name != "pip"
    }


def test_context__holds_only_what_is_named() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert ".git" not in {rule.removeprefix("!") for rule in rules}
