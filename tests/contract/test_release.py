"""What a release checks before it builds anything, and that its workflow stops where a check fails."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.contract.test_workflows import ROOT, load
from tests.github_programs import RECORDER, install

WORKFLOW = load(ROOT / ".github" / "workflows" / "release.yml")
DIGEST = "sha256:" + "0a" * 32
BUILDS = {"amd64": "ubuntu-24.04", "arm64": "ubuntu-24.04-arm"}


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = script()
CHANGELOG = "# Changes\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-23\n\n- First.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What can be released as v1.2.3."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "ci_bot").mkdir()
    (tmp_path / "ci_bot" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "review").mkdir()
    for name in RELEASE.ACTIONS:
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_check__finds_nothing_where_all_agree(checkout: Path) -> None:
    assert list(RELEASE.problems(checkout, "v1.2.3")) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("pyproject.toml", "1.2.3", "1.2.2", "pyproject.toml says version 1.2.2"),
        ("ci_bot/__init__.py", "1.2.3", "1.2.2", "ci_bot/__init__.py has no `__version__ ="),
        ("CHANGELOG.md", "2026-11-23", "unreleased", "has no heading `## [1.2.3] - <date>`"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- New.\n", "still has entries"),
        ("action.yml", "Reviews SQLMesh plans", "Reviews " * 9 + "plans", "the Marketplace takes"),
        ("action.yml", "image: Dockerfile", "image: docker://x", "does not name the Dockerfile"),
        (
            "review/action.yml",
            "image: ../Dockerfile",
            "image: x",
            "review/action.yml does not name",
        ),
    ],
)
def test_check__tells_what_does_not_agree(
    checkout: Path, file: str, old: str, new: str, told: str
) -> None:
    replace(checkout / file, old, new)
    (problem,) = RELEASE.problems(checkout, "v1.2.3")
    assert told in problem


@pytest.mark.parametrize("version", ["1.2.3", "v1.2", "v1.2.3-rc1", "v1.2.3; true"])
def test_check__takes_plain_versions_only(checkout: Path, version: str) -> None:
    (problem,) = RELEASE.problems(checkout, version)
    assert "is no version such as v1.2.3" in problem


def test_check__this_action_fits_the_marketplace(checkout: Path) -> None:
    """The description is checked on the tag, so no later commit repairs a release."""
    assert not [each for each in RELEASE.problems(checkout, "v1.2.3") if "Marketplace" in each]
    action = load(ROOT / "action.yml")
    assert set(action["branding"]) == {"icon", "color"}
    assert len(action["description"]) <= RELEASE.MARKETPLACE_DESCRIPTION


@pytest.mark.parametrize("name", ["action.yml", "review/action.yml"])
def test_pin__changes_one_line_and_takes_an_image_with_its_digest_only(name: str) -> None:
    before = (ROOT / name).read_text("utf-8")
    dockerfile = RELEASE.ACTIONS[name]
    image = f"ghcr.io/octo/shop@{DIGEST}"
    after = RELEASE.pinned(before, dockerfile, image)
    different = [
        (old, new)
        for old, new in zip(before.splitlines(), after.splitlines(), strict=True)
        if old != new
    ]
    assert different == [(f"  image: {dockerfile}", f"  image: docker://{image}")]
    for wrong in (
        "ghcr.io/octo/shop:v1.2.3",
        f"ghcr.io/Octo/shop@{DIGEST}\n",
        "",
        f"x@{DIGEST[:-1]}",
    ):
        with pytest.raises(ValueError, match="no digest to name"):
            RELEASE.pinned(before, dockerfile, wrong)


def test_pin__names_each_image_in_its_action_or_none_of_them(checkout: Path) -> None:
    def images() -> list[str]:
        return [load(checkout / name)["runs"]["image"] for name in RELEASE.ACTIONS]

    before = images()
    assert RELEASE.main(checkout, ["pin", f"x/y@{DIGEST}", "x/y:v1.2.3-review"]) == 2
    assert images() == before
    other = "sha256:" + "0b" * 32
    assert RELEASE.main(checkout, ["pin", f"x/y@{DIGEST}", f"x/y@{other}"]) == 0
    assert images() == [f"docker://x/y@{DIGEST}", f"docker://x/y@{other}"]


def first_script(job: str) -> str:
    return str(next(s["run"] for s in WORKFLOW["jobs"][job]["steps"] if "run" in s))


def run_check(checkout: Path, *, tag: bool, ref: str = "refs/heads/main") -> Any:
    """The first job's script, with a `gh` that knows the tag, or none."""
    programs = checkout / "programs"
    programs.mkdir()
    (programs / "gh").write_text(f"#!/bin/sh\nexit {0 if tag else 1}\n")
    (programs / "gh").chmod(0o755)
    (checkout / ".ci").mkdir()
    (checkout / ".ci" / "release.py").write_text((ROOT / ".ci" / "release.py").read_text("utf-8"))
    return subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", first_script("check")],
        cwd=checkout,
        env={
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GITHUB_REF": ref,
            "GITHUB_REPOSITORY": "Octo/Shop",
            "GITHUB_OUTPUT": str(checkout / "output"),
            "VERSION": "v1.2.3",
            "REGISTRY": "ghcr.io",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_workflow__names_the_image_in_small_letters(checkout: Path) -> None:
    assert run_check(checkout, tag=False).returncode == 0
    assert (checkout / "output").read_text() == "image=ghcr.io/octo/shop\n"


def test_workflow__stops_at_a_tag_that_exists_before_anything_is_built(checkout: Path) -> None:
    done = run_check(checkout, tag=True)
    assert (done.returncode, "The tag v1.2.3 exists already" in done.stdout) == (2, True)
    assert {WORKFLOW["jobs"][job]["needs"] for job in BUILDS} == {"check"}


def test_workflow__from_a_branch_fails_instead_of_being_skipped(checkout: Path) -> None:
    assert run_check(checkout, tag=False, ref="refs/heads/work").returncode == 2
    assert all("if" not in job for job in WORKFLOW["jobs"].values())


def test_workflow__stops_where_the_checkout_is_no_release(checkout: Path) -> None:
    replace(checkout / "pyproject.toml", "1.2.3", "1.2.2")
    assert run_check(checkout, tag=False).returncode == 2
    assert not (checkout / "output").exists()


def test_workflow__tries_the_pushed_images_without_a_login_before_it_tags() -> None:
    tried, other = (dict(WORKFLOW["jobs"][f"try-{name}"]) for name in BUILDS)
    # On a machine of each architecture, as it was built.
    assert [job.pop("runs-on") for job in (tried, other)] == list(BUILDS.values())
    assert tried.pop("name") != other.pop("name")
    assert tried == other
    script = tried["steps"][-1]["run"]
    for image in ("$IMAGE", "$REVIEW_IMAGE"):
        assert f'.ci/try_image.sh "{image}" ' in script
    assert not [step for step in tried["steps"] if "login" in step.get("uses", "")]
    assert {"try-amd64", "try-arm64"} <= set(WORKFLOW["jobs"]["tag"]["needs"])
    for job in ("try-amd64", "try-arm64", "tag"):
        assert "packages" not in WORKFLOW["jobs"][job]["permissions"]


def test_workflow__builds_for_each_architecture_alike_on_its_own_machine() -> None:
    amd64, arm64 = (dict(WORKFLOW["jobs"][job]) for job in BUILDS)
    assert [job.pop("runs-on") for job in (amd64, arm64)] == list(BUILDS.values())
    assert amd64.pop("name") != arm64.pop("name")
    assert amd64 == arm64
    assert amd64["environment"] == "release"
    assert set(BUILDS) <= set(WORKFLOW["jobs"]["publish"]["needs"])


def test_workflow__builds_both_images_alike_with_where_they_come_from() -> None:
    steps = WORKFLOW["jobs"]["amd64"]["steps"]
    full, review = (step["with"] for step in steps if "build-push" in step.get("uses", ""))
    labels = dict(line.split("=", 1) for line in full["labels"].splitlines())
    prefix = "org.opencontainers.image."
    assert set(labels) == {prefix + name for name in ("source", "version", "revision")}
    assert review.pop("target") == "review"
    # The second one is made of the stages of the first.
    assert full.pop("no-cache") is True
    assert review == full
    outputs = full["outputs"].split(",")
    # Nobody gets an image of one architecture by the name of the release.
    assert {"compression=zstd", "push=true", "push-by-digest=true"} <= set(outputs)
    assert "tags" not in full


def test_workflow__tags_a_commit_with_both_actions_as_they_are_pinned(checkout: Path) -> None:
    """The last script, with a `gh` that writes down what it was asked for."""
    programs = install(RECORDER, checkout / "programs").parent
    (checkout / ".ci").mkdir()
    (checkout / ".ci" / "release.py").write_text((ROOT / ".ci" / "release.py").read_text("utf-8"))
    script = WORKFLOW["jobs"]["tag"]["steps"][-1]["run"]
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        env={
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GH_RECORD": str(checkout / "record"),
            "GITHUB_REPOSITORY": "octo/shop",
            "GITHUB_SHA": "1" * 40,
            "GITHUB_STEP_SUMMARY": str(checkout / "summary"),
            "VERSION": "v1.2.3",
            "IMAGE": f"ghcr.io/octo/shop@{DIGEST}",
            "REVIEW_IMAGE": f"ghcr.io/octo/shop@{DIGEST[:-1]}b",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = [json.loads(line) for line in (checkout / "record").read_text().splitlines()]
    asked = [words[1].removeprefix("repos/octo/shop/") for words, _ in calls]
    assert asked == [f"git/commits/{'1' * 40}", "git/trees", "git/commits", "git/refs", "create"]
    body = calls[1][1]
    assert body["base_tree"] == f"sha-of-{'1' * 40}"
    assert [(entry["path"], entry["mode"], entry["type"]) for entry in body["tree"]] == [
        (name, "100644", "blob") for name in RELEASE.ACTIONS
    ]
    for entry, digest in zip(body["tree"], (DIGEST, DIGEST[:-1] + "b"), strict=True):
        assert f"\n  image: docker://ghcr.io/octo/shop@{digest}\n" in entry["content"]
    assert "tree=sha-of-trees" in calls[2][0]
    assert f"parents[]={'1' * 40}" in calls[2][0]
    assert {"ref=refs/tags/v1.2.3", "sha=sha-of-commits"} <= set(calls[3][0])
    assert calls[4][0][:3] == ["release", "create", "v1.2.3"]
