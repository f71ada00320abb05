"""The Dockerfile's promises that can be read off its text; tests/container has the others."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
DIGEST = r"@sha256:[0-9a-f]{64}"
# The Pythons that the package installs on, each with the lock file of its image.
IMAGE_LOCKS = {
    "3.10": ".ci/image/locks/python-3.10.lock",
    "3.11": "requirements.lock",
    "3.12": ".ci/image/locks/python-3.12.lock",
    "3.13": ".ci/image/locks/python-3.13.lock",
}
LOCKS = [
    *IMAGE_LOCKS.values(),
    "requirements-dev.lock",
    ".ci/image/requirements-build.lock",
]
STAGES = ("review", "")  # the images: a stage by its name, and the last one


def locked(name: str) -> dict[str, str]:
    """The packages of a lock file with their versions."""
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.M))


@pytest.fixture(scope="module")
def instructions() -> list[str]:
    """The Dockerfile's instructions, each on one line, without comments."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [line for line in "\n".join(kept).replace("\\\n", " ").splitlines() if line.strip()]


def test_base__is_debian_bookworm_slim_by_digest(instructions: list[str]) -> None:
    assert instructions[0] == "ARG PYTHON_VERSION=3.11"
    assert re.fullmatch(rf"ARG BASE_IMAGE=debian:bookworm-slim{DIGEST}", instructions[1])


def test_base__no_stage_is_built_on_anything_else(instructions: list[str]) -> None:
    stages: set[str] = set()
    for line in instructions:
        if line.startswith("FROM "):
            _, source, *name = line.split()
            assert source in {"${BASE_IMAGE}", "scratch", *stages}, line
            stages.update(name[1:])


def test_entry_point__is_pythons_full_path_in_exec_form_and_isolated(
    instructions: list[str],
) -> None:
    entry, same = [line for line in instructions if line.startswith("ENTRYPOINT ")]
    assert entry == same
    command = json.loads(entry.removeprefix("ENTRYPOINT "))
    assert command[0].startswith("/")
    assert "-I" in command
    assert command[-2:] == ["-m", "ci_bot"]
    assert instructions.count('CMD ["run"]') == len(STAGES)


@pytest.mark.parametrize("name", STAGES)
def test_final_stages__start_as_root_and_install_nothing(
    instructions: list[str], name: str
) -> None:
    stages = "\n".join(instructions).split("\nFROM ")
    (stage,) = (
        [each for each in stages if each.splitlines()[0].endswith(f" AS {name}")]
        if name
        else stages[-1:]
    )
    final = stage.splitlines()
    assert [line for line in final if line.startswith("USER ")] == ["USER 0:0"]
    assert not [line for line in final if line.startswith(("RUN ", "ADD "))]
    assert all("--from=" in line for line in final if line.startswith("COPY "))


def test_waivers__have_their_reason_above_them() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    waivers = [index for index, line in enumerate(lines) if "hadolint ignore=" in line]
    # The user root, and the review image's system in one layer.
    ignored = sorted(lines[index].removeprefix("# hadolint ignore=") for index in waivers)
    assert ignored == [*["DL3002"] * len(STAGES), "DL3067"]
    for index in waivers:
        assert lines[index - 1].startswith("# "), "say why, right above"


def test_worker__has_the_same_number_everywhere(instructions: list[str]) -> None:
    text = "\n".join(instructions)
    assert re.findall(r"(?:--uid|--gid|\"uid\":|\"gid\":) (\d+)", text) == ["10001"] * 7


def test_apt__every_package_is_pinned_to_its_release_line(instructions: list[str]) -> None:
    installs = re.findall(
        r"apt-get install --yes --no-install-recommends (.+?)(?:&&|\|\||$)", "\n".join(instructions)
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
        assert re.match(
            r"[a-z0-9.\[\],-]+==\S+ (?:; [^\\]+)?\\\n    --hash=sha256:[0-9a-f]{64}", package
        )


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


def test_lock__there_is_one_for_each_python_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.10,<3.14"
    stored = {path.relative_to(ROOT).as_posix() for path in (ROOT / ".ci/image/locks").iterdir()}
    assert stored == set(IMAGE_LOCKS.values()) - {"requirements.lock"}
    command = r" pyproject\.toml .*requirements\.in .*--python-version ([\d.]+) "
    for version, name in IMAGE_LOCKS.items():
        found = re.search(command, (ROOT / name).read_text("utf-8").splitlines()[1])
        assert found is not None
        assert found[1] == version


def test_lock__of_another_python_has_the_packages_that_decide_at_the_same_version() -> None:
    """What reads SQL, plans and speaks with GitHub is one and the same in all images."""
    wanted = ("sqlmesh", "sqlglot", "pyspark", "pygithub", "duckdb", "psycopg2-binary", "pydantic")
    found = {name: [locked(name)[each] for each in wanted] for name in IMAGE_LOCKS.values()}
    assert len(set(map(tuple, found.values()))) == 1, found


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(("version", "name"), IMAGE_LOCKS.items())
def test_lock__is_complete_for_its_python(version: str, name: str, machine: str) -> None:
    """Every package that a locked one asks for on that Python and machine is locked, too, in a fitting
    version.

    By the metadata of the packages that are installed here; what another Python needs beside them
    is named.
    """
    versions = locked(name)
    surroundings = {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "platform_system": "Linux",
        "sys_platform": "linux",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "posix",
        "extra": "",
    }
    looked_at = 0
    for package, its_version in versions.items():
        try:
            here = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            here_runs = f"{sys.version_info.major}.{sys.version_info.minor}"
            assert version != here_runs, f"{package} is not installed here"
            continue
        if here.version != its_version:
            continue
        looked_at += 1
        for line in here.requires or ():
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate(surroundings):
                spelled = re.sub(r"[-_.]+", "-", asked.name).lower()
                assert spelled in versions, f"{package} asks for {line}"
                assert asked.specifier.contains(versions[spelled], prereleases=True), line
    assert looked_at > 50


def test_lock__tests_run_on_what_the_image_has() -> None:
    image = locked("requirements.lock")
    # .ci/setup.sh installs both.
    tests = locked(".ci/image/requirements-build.lock") | locked("requirements-dev.lock")
    assert {name: tests.get(name) for name in image if name != "pip"} == {
        name: version for name, version in image.items() if name != "pip"
    }


def test_context__holds_only_what_is_named() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert ".git" not in {rule.removeprefix("!") for rule in rules}
