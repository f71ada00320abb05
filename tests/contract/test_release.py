"""What a release checks before it builds anything, and that its workflow stops where a check fails."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ci_bot.bot.cli.setup.plan_files import find_action_release
from tests.checkout import GIT, Repository
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
DECLARED = "your-org/shop@" + "0" * 40 + " # v0.0.0"
PAGE = f"""\
# Start

<!-- not released -->
Nothing is released: replace `your-org/…@000…`.

<!-- /not released -->
- uses: your-org/shop/review@{"0" * 40} # v0.0.0
- uses: your-org/shop@{"0" * 40} # v0.0.0
pip install "shop @ git+https://github.com/your-org/shop@<commit>"
    rev: v0.0.0
oci://ghcr.io/your-org/shop@sha256:1, [here](https://github.com/your-org/shop/releases).
The other is your-org/shop-window; a third my-your-org/shop.
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What can be released as v1.2.3; what a run leaves goes beside it."""
    tmp_path = tmp_path / "checkout"
    tmp_path.mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "ci_bot").mkdir()
    (tmp_path / "ci_bot" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / RELEASE.DECLARED_IN).parent.mkdir(parents=True)
    (tmp_path / RELEASE.DECLARED_IN).write_text(f'_RELEASED = "{DECLARED}"\n')
    (tmp_path / "README.md").write_text(PAGE)
    (tmp_path / "review").mkdir()
    for name in RELEASE.ACTIONS:
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "release.py").write_text((ROOT / ".ci" / "release.py").read_text("utf-8"))
    Repository(tmp_path, new=False).commit()
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
        ("CHANGELOG.md", "- First.\n", "", "with entries below it"),
        ("action.yml", "  color: purple", "  color: pink", "no `branding`"),
        ("action.yml", "author:", "maker:", "no `author`"),
        (RELEASE.DECLARED_IN, "_RELEASED", "RELEASED", "does not declare which release"),
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


def test_cut__makes_a_release_of_what_waits(checkout: Path) -> None:
    replace(checkout / "CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- New.\n")
    assert list(RELEASE.problems(checkout, "v1.3.0")), "not without the cut"
    assert RELEASE.cut(checkout, "v1.3.0", "2026-11-26") == []
    assert list(RELEASE.problems(checkout, "v1.3.0")) == []
    assert (checkout / "CHANGELOG.md").read_text() == (
        "# Changes\n\n## [Unreleased]\n\n## [1.3.0] - 2026-11-26\n\n- New.\n\n"
        "## [1.2.3] - 2026-11-23\n\n- First.\n"
    )


def test_cut__again_takes_in_what_came_since(checkout: Path) -> None:
    log = checkout / "CHANGELOG.md"
    replace(log, "[Unreleased]\n", "[Unreleased]\n\n### Added\n\n- A.\n\n### Fixed\n\n- F.\n")
    assert RELEASE.cut(checkout, "v1.3.0", "2026-11-26") == []
    replace(log, "[Unreleased]\n", "[Unreleased]\n\n### Safety\n\n- S.\n\n### Added\n\n- B.\n")
    assert list(RELEASE.problems(checkout, "v1.3.0")), "entries wait"
    assert RELEASE.cut(checkout, "v1.3.0", "2026-11-27") == []
    assert list(RELEASE.problems(checkout, "v1.3.0")) == []
    assert log.read_text() == (
        "# Changes\n\n## [Unreleased]\n\n## [1.3.0] - 2026-11-27\n\n### Added\n\n- B.\n- A.\n\n"
        "### Fixed\n\n- F.\n\n### Safety\n\n- S.\n\n## [1.2.3] - 2026-11-23\n\n- First.\n"
    )


def test_cut__of_a_tagged_version_takes_in_nothing(checkout: Path) -> None:
    replace(checkout / "CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- New.\n")
    Repository(checkout, new=False).commit()
    Repository(checkout, new=False).git("tag", "v1.2.3")
    (problem,) = RELEASE.cut(checkout, "v1.2.3", "2026-11-27")
    assert "has a heading for 1.2.3 already" in problem


@pytest.mark.parametrize(
    ("version", "file", "old", "new", "told"),
    [
        ("1.3.0", None, "", "", "is no version such as"),
        ("v1.2.3", None, "", "", "has a heading for 1.2.3 already"),
        ("v1.3.0", None, "", "", "has no entries under"),
        ("v1.3.0", "ci_bot/__init__.py", "1.2.3", "dev", "has 0 lines with a version"),
    ],
)
def test_cut__that_is_refused_writes_nothing(
    checkout: Path, version: str, file: str | None, old: str, new: str, told: str
) -> None:
    if file is not None:
        replace(checkout / file, old, new)
        replace(checkout / "CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- New.\n")
    Repository(checkout, new=False).commit()
    (problem,) = RELEASE.cut(checkout, version, "2026-11-26")
    assert told in problem
    assert RELEASE.tree(checkout, "base")["tree"] == []


COMMIT, OTHER = "c" * 40, "d" * 40
# What the recorder calls a new commit.
MADE = "c0" * 20


def test_name__writes_the_release_wherever_the_declared_one_stands(checkout: Path) -> None:
    assert RELEASE.name_release(checkout, RELEASE.Release("Octo/Shop", "v1.2.3", COMMIT)) == []
    assert (
        (checkout / "README.md").read_text()
        == f"""\
# Start

- uses: Octo/Shop/review@{COMMIT} # v1.2.3
- uses: Octo/Shop@{COMMIT} # v1.2.3
pip install "shop @ git+https://github.com/Octo/Shop@{COMMIT}"
    rev: v1.2.3
oci://ghcr.io/octo/shop@sha256:1, [here](https://github.com/Octo/Shop/releases).
The other is your-org/shop-window; a third my-your-org/shop.
"""
    )
    declared = (checkout / RELEASE.DECLARED_IN).read_text()
    assert declared == f'_RELEASED = "Octo/Shop@{COMMIT} # v1.2.3"\n'


def test_name__of_the_next_release_takes_the_place_of_the_last(checkout: Path) -> None:
    RELEASE.name_release(checkout, RELEASE.Release("Octo/Shop", "v1.2.3", COMMIT))
    first = (checkout / "README.md").read_text()
    assert RELEASE.name_release(checkout, RELEASE.Release("Octo/Shop", "v1.2.4", OTHER)) == []
    expected = first.replace(COMMIT, OTHER).replace("v1.2.3", "v1.2.4")
    assert (checkout / "README.md").read_text() == expected


def test_name__without_a_commit_names_the_tag(checkout: Path) -> None:
    """A commit cannot name itself."""
    assert RELEASE.name_release(checkout, RELEASE.Release("Octo/Shop", "v1.2.3", None)) == []
    page = (checkout / "README.md").read_text()
    assert "- uses: Octo/Shop/review@v1.2.3\n" in page
    assert "github.com/Octo/Shop@v1.2.3" in page
    declared = (checkout / RELEASE.DECLARED_IN).read_text()
    assert declared == f'_RELEASED = "Octo/Shop@{"0" * 40} # v1.2.3"\n'


@pytest.mark.parametrize(
    "words", [("octo", "v1.2.3"), ("octo/shop", "1.2.3"), ("octo/shop", "v1.2.3", "c" * 39)]
)
def test_name__takes_no_other_words(checkout: Path, words: tuple[str, ...]) -> None:
    assert RELEASE.main(checkout, ["name", *words]) == 2
    assert RELEASE.tree(checkout, "base")["tree"] == []


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository with the documents of a release."""
    place = tmp_path_factory.mktemp("released")
    listed = subprocess.run(
        [GIT, "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for path in filter(None, listed.split("\0")):
        if (ROOT / path).is_file() and not path.startswith("tests/golden/"):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes((ROOT / path).read_bytes())
    Repository(place, new=False).commit()
    assert RELEASE.name_release(place, RELEASE.Release("Octo/Shop", "v9.8.7", COMMIT)) == []
    return place


def test_name__leaves_no_placeholder_in_this_repository(released: Path) -> None:
    """Everywhere but in what speaks of the placeholder itself."""
    declared = find_action_release(None)
    changed = {entry["path"] for entry in RELEASE.tree(released, "base")["tree"]}
    assert {"README.md", "docs/installation.md", "docs/reference.md", "mkdocs.yml"} <= changed
    assert {f".github/examples/{name}.yml" for name in ("review", "apply", "cleanup")} <= changed
    for path in released.rglob("*"):
        name = path.relative_to(released).as_posix()
        if path.is_file() and not name.startswith(".git/") and name not in RELEASE.KEPT:
            text = path.read_bytes()
            for left in (declared.repository, "your-org/", "not released -->", "rev: v0.0.0"):
                assert left.encode() not in text, f"{name}: {left}"


def test_name__agrees_with_what_this_program_writes(released: Path) -> None:
    """The examples are those of `ci-bot init` from the released checkout, to the letter."""
    environment = {**os.environ, "PYTHONPATH": str(released), "PYTHONDONTWRITEBYTECODE": "1"}
    before = RELEASE.tree(released, "base")
    for generator in ("tests.example_workflows", "tests.reference_page"):
        subprocess.run([sys.executable, "-m", generator], cwd=released, env=environment, check=True)
    assert RELEASE.tree(released, "base") == before
    assert f"Octo/Shop/review@{COMMIT} # v9.8.7" in (
        released / ".github" / "examples" / "review.yml"
    ).read_text("utf-8")


def test_notes__name_the_release_and_give_its_entries(checkout: Path) -> None:
    text = RELEASE.notes(checkout, RELEASE.Release("octo/shop", "v1.2.3", COMMIT))
    assert f"- uses: octo/shop/review@{COMMIT} # v1.2.3\n" in text
    assert text.endswith("\n\n- First.\n")


def script_of(job: str) -> str:
    return "\n".join(str(step["run"]) for step in WORKFLOW["jobs"][job]["steps"] if "run" in step)


def run_script(checkout: Path, job: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The scripts of a job, with a `gh` that writes down what it was asked for."""
    programs = install(RECORDER, checkout.parent / "programs").parent
    return subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of(job)],
        cwd=checkout,
        env={
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "GH_RECORD": str(checkout.parent / "record"),
            "GITHUB_REF": "refs/heads/main",
            "GITHUB_SHA": "1" * 40,
            "GITHUB_REPOSITORY": "Octo/Shop",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "7",
            "GITHUB_OUTPUT": str(checkout.parent / "output"),
            "GITHUB_STEP_SUMMARY": str(checkout.parent / "summary"),
            "RUNNER_TEMP": str(checkout.parent),
            "VERSION": "v1.2.3",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def asked(checkout: Path) -> list[tuple[list[str], Any]]:
    """What GitHub was asked, each with its document."""
    lines = (checkout.parent / "record").read_text("utf-8").splitlines()
    return [(words, body) for words, body in map(json.loads, lines)]


def run_check(
    checkout: Path, *, tag: str = "", ref: str = "refs/heads/main", compared: str = "behind"
) -> Any:
    """The first job's script. `tag`: where the tag is, if it is; `compared`: the run's commit to main."""
    return run_script(
        checkout, "check", GITHUB_REF=ref, GH_TAG=tag, GH_COMPARED=compared, REGISTRY="ghcr.io"
    )


def test_workflow__names_the_image_in_small_letters(checkout: Path) -> None:
    assert run_check(checkout).returncode == 0
    assert (checkout.parent / "output").read_text() == "image=ghcr.io/octo/shop\n"


def test_workflow__stops_at_a_tag_that_exists_before_anything_is_built(checkout: Path) -> None:
    done = run_check(checkout, tag="1" * 40)
    assert (done.returncode, "The tag v1.2.3 exists already" in done.stdout) == (2, True)
    assert {WORKFLOW["jobs"][job]["needs"] for job in BUILDS} == {"check"}


PUSHED = "refs/tags/v1.2.3"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"tag": "1" * 40}, None),
        ({"tag": "1" * 40, "compared": "identical"}, None),
        ({"tag": "1" * 40, "compared": "ahead"}, "is on no commit of main"),
        ({"tag": "1" * 40, "compared": "diverged"}, "is on no commit of main"),
        ({"tag": "2" * 40}, "is released already, or annotated"),
        ({"tag": "1" * 40, "ref": "refs/tags/v1.2.4"}, "is made from main or a tag on it"),
    ],
)
def test_workflow__of_a_pushed_tag_has_the_same_gates(
    checkout: Path, given: dict[str, str], told: str | None
) -> None:
    done = run_check(checkout, **{"ref": PUSHED, **given})
    assert (done.returncode == 0) == (told is None), done.stdout
    assert told is None or told in done.stdout
    (pattern,) = WORKFLOW["on"]["push"]["tags"]
    assert pattern == "v[0-9]+.[0-9]+.[0-9]+"
    assert "branches" not in WORKFLOW["on"]["push"]


def test_workflow__from_a_branch_fails_instead_of_being_skipped(checkout: Path) -> None:
    assert run_check(checkout, ref="refs/heads/work").returncode == 2
    assert all("if" not in job for job in WORKFLOW["jobs"].values())


def test_workflow__stops_where_the_checkout_is_no_release(checkout: Path) -> None:
    replace(checkout / "pyproject.toml", "1.2.3", "1.2.2")
    assert run_check(checkout).returncode == 2
    assert not (checkout.parent / "output").exists()


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
    assert {"try-amd64", "try-arm64"} <= set(WORKFLOW["jobs"]["commit"]["needs"])
    for job in ("try-amd64", "try-arm64", "commit", "package", "tag"):
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


def test_workflow__commits_both_actions_as_they_are_pinned(checkout: Path) -> None:
    done = run_script(
        checkout,
        "commit",
        IMAGE=f"ghcr.io/octo/shop@{DIGEST}",
        REVIEW_IMAGE=f"ghcr.io/octo/shop@{DIGEST[:-1]}b",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = asked(checkout)
    parts = [words[1].removeprefix("repos/Octo/Shop/") for words, _ in calls]
    assert parts == [f"git/commits/{'1' * 40}", "git/trees", "git/commits"], "no tag, no branch"
    body = calls[1][1]
    assert body["base_tree"] == f"sha-of-{'1' * 40}"
    written = {entry["path"]: entry for entry in body["tree"]}
    assert set(written) == {*RELEASE.ACTIONS, "README.md", RELEASE.DECLARED_IN}
    assert {(entry["mode"], entry["type"]) for entry in written.values()} == {("100644", "blob")}
    for name, digest in zip(RELEASE.ACTIONS, (DIGEST, DIGEST[:-1] + "b"), strict=True):
        assert f"\n  image: docker://ghcr.io/octo/shop@{digest}\n" in written[name]["content"]
    assert "Octo/Shop/review@v1.2.3\n" in written["README.md"]["content"]
    assert "tree=sha-of-trees" in calls[2][0]
    assert f"parents[]={'1' * 40}" in calls[2][0]
    assert (checkout.parent / "output").read_text() == f"sha={MADE}\n"


def run_tag(
    checkout: Path, *, pushed: bool = False, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The last job's script, with a package of one file."""
    package = checkout.parent / "artifacts" / "package"
    package.mkdir(parents=True)
    (package / "shop.whl").write_bytes(b"wheel")
    hashed = hashlib.sha256(b"wheel").hexdigest()
    (package / "SHA256SUMS").write_text(f"{hashed}  shop.whl\n")
    return run_script(
        checkout,
        "tag",
        COMMIT=COMMIT,
        GH_ARTIFACTS=str(package.parent),
        GITHUB_REF=PUSHED if pushed else "refs/heads/main",
        **variables,
    )


def asked_to_change(checkout: Path) -> list[tuple[list[str], Any]]:
    """What GitHub was asked, without the questions whether something is there."""
    return [
        (words, body)
        for words, body in asked(checkout)
        if "/git/ref/" not in words[1] and words[:2] != ["release", "view"]
    ]


@pytest.mark.parametrize("pushed", [False, True])
def test_workflow__tags_that_commit_with_its_package(checkout: Path, pushed: bool) -> None:
    done = run_tag(checkout, pushed=pushed)
    assert done.returncode == 0, done.stdout + done.stderr
    _, _, trees, named, tagged, created, branch = asked_to_change(checkout)
    # Documents of main name the commit; its actions go on building their image.
    assert {entry["path"] for entry in trees[1]["tree"]} == {"README.md", RELEASE.DECLARED_IN}
    assert f"parents[]={'1' * 40}" in named[0]
    assert f"sha={COMMIT}" in tagged[0]
    moved = {"--method", "PATCH", "repos/Octo/Shop/git/refs/tags/v1.2.3", "force=false"}
    assert (moved <= set(tagged[0]), f"ref={PUSHED}" in tagged[0]) == (pushed, not pushed)
    assert created[0][:3] == ["release", "create", "v1.2.3"]
    assert {Path(word).name for word in created[0]} >= {"shop.whl", "SHA256SUMS"}
    assert f"@{COMMIT} # v1.2.3" in (checkout.parent / "notes.md").read_text()
    assert {"ref=refs/heads/released-v1.2.3", f"sha={MADE}"} <= set(branch[0])
    assert "compare/main...released-v1.2.3" in (checkout.parent / "summary").read_text()


@pytest.mark.parametrize("there", ["tag", "tag release", "tag release branch"])
def test_workflow__started_again_does_what_is_left(checkout: Path, there: str) -> None:
    done = run_tag(checkout, GH_TAG=COMMIT, GH_THERE=there)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = [" ".join(words) for words, _ in asked_to_change(checkout)]
    assert not [call for call in calls if "ref=refs/tags/" in call]
    branches = [call for call in calls if "ref=refs/heads/released-v1.2.3" in call]
    assert len(branches) == ("branch" not in there)
    pages = [call.split()[1] for call in calls if call.startswith("release ")]
    assert pages == (["upload", "edit"] if "release" in there else ["create"])


def test_workflow__started_again_leaves_a_tag_that_somebody_has_moved(checkout: Path) -> None:
    done = run_tag(checkout, GH_TAG="2" * 40)
    assert done.returncode == 2
    assert f"is on {'2' * 40} by now" in done.stdout
    assert not [words for words, _ in asked(checkout) if words[0] == "release"]


def test_workflow__with_another_package_than_was_built_tags_nothing(checkout: Path) -> None:
    package = checkout.parent / "artifacts" / "package"
    package.mkdir(parents=True)
    (package / "shop.whl").write_bytes(b"other")
    (package / "SHA256SUMS").write_text(f"{hashlib.sha256(b'wheel').hexdigest()}  shop.whl\n")
    done = run_script(checkout, "tag", COMMIT=COMMIT, GH_ARTIFACTS=str(package.parent))
    assert done.returncode != 0
    assert [words[:2] for words, _ in asked(checkout)] == [["run", "download"]]


def test_workflow__builds_the_package_where_nothing_can_be_written() -> None:
    package = WORKFLOW["jobs"]["package"]
    assert package["permissions"] == {"contents": "read"}
    assert set(WORKFLOW["jobs"]["tag"]["needs"]) >= {"commit", "package"}
    assert set(WORKFLOW["jobs"]["commit"]["needs"]) >= {"try-amd64", "try-arm64"}
    order = [".ci/setup.sh", "release.py name", ".ci/package.sh", ".ci/try_wheel.sh"]
    found = [script_of("package").index(word) for word in order]
    assert found == sorted(found)
