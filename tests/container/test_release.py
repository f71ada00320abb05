"""The whole release, run by act: both images for both architectures into a registry on loopback, tried,
and then the tag.

GitHub's place has a recorder, which `gh` is; stand-ins build with the engine of these tests, whose
kept stages they use, and attest nothing. The machine for arm64 is one whose docker asks for that; what
it builds and tries is emulated, or, where nothing emulates, of this machine's own kind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.act.machine import ActMachine, Images, WorkflowRun
from tests.checkout import GIT, Repository
from tests.conftest import missing
from tests.container.engine import LOCAL_BASE, Engine, build_secrets
from tests.container.fixtures import ROOT
from tests.container.registry import registry
from tests.github_programs import RECORDER, install

pytestmark = [pytest.mark.night, pytest.mark.slow]

VERSION = "9.8.7"
# What the recorder calls a new commit.
MADE = "c0" * 20
PLUGINS = "/usr/libexec/docker/cli-plugins"
BASES = {"amd64": LOCAL_BASE, "arm64": f"{LOCAL_BASE}-arm64"}
# What the jobs for amd64 and for arm64 build, and what `uname` says there.
AMD, ARM = ("amd64", "x86_64"), ("arm64", "aarch64")


@dataclass
class Maintainers:
    """This repository as it is released."""

    machine: ActMachine
    checkout: Repository
    registry: str
    record: Path
    built: tuple[tuple[str, str], ...]

    def release(self) -> WorkflowRun:
        """What follows when a maintainer pushes the tag."""
        head = self.checkout.git("rev-parse", "HEAD")
        variables = {**self.machine.environment, "GH_TAG": head}
        return replace(self.machine, environment=variables).run(
            "release.yml",
            "push",
            {"ref": f"refs/tags/v{VERSION}", "after": head},
            token="nobody-asks-for-it",
            sha=head,
            run_id=1,
            variables={"CONTAINER_REGISTRY": self.registry},
            timeout=3600,
        )

    def asked(self) -> list[tuple[list[str], Any]]:
        """What GitHub was asked, each with its document."""
        lines = self.record.read_text("utf-8").splitlines()
        return [(words, body) for words, body in map(json.loads, lines)]


def prepared(place: Path) -> Repository:
    """This checkout after the first step of RELEASING.md."""
    files = subprocess.run(
        [GIT, "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in files.split("\0"):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    # A release without an entry is refused, and the last one may have taken all of them.
    changes, heading = place / "CHANGELOG.md", "## [Unreleased]\n"
    text = changes.read_text("utf-8")
    assert heading in text
    entry = f"{heading}\n- This dry run.\n"
    changes.write_text(text.replace(heading, entry, 1), encoding="utf-8")
    subprocess.run([sys.executable, ".ci/release.py", "cut", f"v{VERSION}"], cwd=place, check=True)
    found = Repository(place, new=False)
    found.git("config", "uploadpack.allowAnySHA1InWant", "true")
    found.commit()
    return found


@pytest.fixture(params=["own", "emulated"])
def built(request: pytest.FixtureRequest) -> tuple[tuple[str, str], ...]:
    """The kinds of images: both of this machine's kind, which takes minutes, or arm64 emulated, an hour."""
    return (AMD, AMD) if request.param == "own" else (AMD, ARM)


@pytest.fixture
def arm_machine(
    engine: Engine, review_image: str, built: tuple[tuple[str, str], ...], tmp_path: Path
) -> Iterator[str]:
    """Image of a machine that builds, pulls and runs what machines of that architecture do."""
    if ARM not in built:
        yield review_image
        return
    if not Path("/proc/sys/fs/binfmt_misc/qemu-aarch64").exists():
        missing("nothing runs programs for arm64 here; `.ci/engine.sh arm64` lets the engine do it")
    tag = "ci-bot:test-arm-machine"
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / "Dockerfile").write_text(
        f"FROM {review_image}\nENV DOCKER_DEFAULT_PLATFORM=linux/arm64\n", encoding="utf-8"
    )
    engine.call("build", "--quiet", "--tag", tag, str(tmp_path / "arm"))
    yield tag
    engine.call("rmi", "--force", tag, check=False)


@pytest.fixture
def maintainers(
    engine: Engine,
    image: str,
    review_image: str,
    arm_machine: str,
    built: tuple[tuple[str, str], ...],
    act_program: Path,
    buildx_program: Path,
    tmp_path: Path,
) -> Iterator[Maintainers]:
    # The engine mounts directories of this machine, so the job's scratch is one of them.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    build = tmp_path / "build"
    build.mkdir()
    secrets = build_secrets(os.environ, build)
    for name, path in secrets.items():
        shutil.copy(path, build / name)
    for architecture, base in BASES.items():
        options = ["--network=host", *(f"--secret=id={name},src=/build/{name}" for name in secrets)]
        if engine.has_image(base):
            options.append(f"--build-arg=BASE_IMAGE={base}")
        (build / f"options-{architecture}").write_text("\n".join(options) + "\n", encoding="utf-8")
    record = tmp_path / "record"
    record.touch()
    gh = install(RECORDER, tmp_path / "programs")
    checkout = prepared(tmp_path / "origin")
    with registry(tmp_path) as address:
        machine = ActMachine(
            program=act_program,
            images=Images(full=image, review=review_image),
            engine=engine.host,
            api_url="http://127.0.0.1:9",
            repository="Octo/Shop",
            origin=checkout.root,
            mounts=[scratch],
            # What both take from the package index: test_wheel.py does the second.
            edits={
                "          .ci/setup.sh test\n": f"          ln -s {sys.prefix} .venv\n",
                "          .ci/try_wheel.sh package/*.whl": "          echo",
            },
            home=tmp_path,
            workflows=ROOT / ".github" / "workflows",
            volumes=[
                f"{engine.client}:/usr/local/bin/docker:ro",
                f"{buildx_program}:{PLUGINS}/docker-buildx:ro",
                f"{engine.host.removeprefix('unix://')}:/var/run/docker.sock",
                f"{build}:/build:ro",
                f"{gh}:/usr/local/bin/gh:ro",
                f"{record}:/record",
                f"{sys.prefix}:{sys.prefix}:ro",
                f"{sys.base_prefix}:{sys.base_prefix}:ro",
            ],
            environment={
                "TMPDIR": str(scratch),
                "GH_RECORD": "/record",
                "GITHUB_REF": f"refs/tags/v{VERSION}",
                "GITHUB_REF_NAME": f"v{VERSION}",
                "GH_ARTIFACTS": "/artifacts",
            },
            arm=arm_machine,
        )
        yield Maintainers(machine, checkout, address, record, built)
    pulled = engine.call("images", "--no-trunc", "--quiet", f"{address}/octo/shop").stdout.split()
    if pulled:
        engine.call("rmi", "--force", *pulled)


def test_release__publishes_tries_and_tags(maintainers: Maintainers, engine: Engine) -> None:
    ran = maintainers.release()

    assert ran.exit_code == 0, ran.printed[-9000:]
    published = ran.outputs("index")
    names = {
        "action.yml": f"{maintainers.registry}/octo/shop@{published['full']}",
        "review/action.yml": f"{maintainers.registry}/octo/shop@{published['review']}",
    }
    for name in names.values():
        for architecture, machine in dict.fromkeys(maintainers.built):
            assert f"{name} is version {VERSION} for {machine}, and runs" in ran.printed
            engine.call("pull", "--quiet", "--platform", f"linux/{architecture}", name)
            inspected = engine.call("image", "inspect", name).stdout
            (found,) = json.loads(inspected)
            assert found["Architecture"] == architecture
            labels = found["Config"]["Labels"]
            assert labels["org.opencontainers.image.version"] == f"v{VERSION}"
            assert labels["org.opencontainers.image.revision"] == maintainers.checkout.git(
                "rev-parse", "HEAD"
            )
            assert labels["org.opencontainers.image.source"] == "https://github.com/Octo/Shop"
            # Engines before Docker 29's image store keep one image under one digest.
            engine.call("rmi", "--force", name)
    asked = maintainers.asked()
    parts = [words[1].removeprefix("repos/Octo/Shop/") for words, _ in asked]
    head = maintainers.checkout.git("rev-parse", "HEAD")
    parts = [part for part in parts if part not in ("--method", "download")]
    assert parts == [
        f"compare/main...{head}", f"git/ref/tags/v{VERSION}",
        f"git/commits/{head}", "git/trees", "git/commits",
        f"git/ref/heads/released-v{VERSION}",
        f"git/commits/{head}", "git/trees", "git/commits", "view", "create", "git/refs",
    ]  # fmt: skip
    tagged, documents = (
        {entry["path"]: entry["content"] for entry in body["tree"]}
        for _, body in asked
        if body is not None
    )
    for path, image in names.items():
        assert f"\n  image: docker://{image}\n" in tagged[path]
    assert f"Octo/Shop/review@v{VERSION}" in tagged["README.md"]
    assert f"Octo/Shop/review@{MADE} # v{VERSION}" in documents["README.md"]
    moved = next(words for words, _ in asked if "--method" in words)
    assert {f"repos/Octo/Shop/git/refs/tags/v{VERSION}", f"sha={MADE}"} <= set(moved)
    created = next(words for words, _ in asked if words[:2] == ["release", "create"])
    assert {Path(word).name for word in created} >= {
        f"sqlmesh_plan_review-{VERSION}-py3-none-any.whl", "site.tar.gz", "SHA256SUMS",
    }  # fmt: skip


@pytest.mark.parametrize("built", ["own"], indirect=True)
def test_release__of_an_image_that_does_not_run__tags_nothing(maintainers: Maintainers) -> None:
    (maintainers.checkout.root / "ci_bot" / "bot" / "cli" / "commands.py").write_text(
        "import nothing_like_it\n"
    )
    maintainers.checkout.commit()

    ran = maintainers.release()

    assert ran.exit_code == 1
    assert "The image does not start." in ran.printed, ran.printed[-3000:]
    head = maintainers.checkout.git("rev-parse", "HEAD")
    assert [words[1] for words, _ in maintainers.asked()] == [
        f"repos/Octo/Shop/compare/main...{head}",
        f"repos/Octo/Shop/git/ref/tags/v{VERSION}",
    ]
