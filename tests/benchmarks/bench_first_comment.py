"""From a clone of a SQLMesh project to the first comment: what a person types, and how long it takes.

    .venv/bin/python -m tests.benchmarks.bench_first_comment CLONE [--project DIRECTORY]
        [--sqlmesh VERSION]

As README's quick start has it: pip installs the wheel of this checkout, `ci-bot init --level review`
writes the workflow, and git pushes a branch with it, here with one more model; `--pull-request` is
that and GitHub's `gh`. Then act runs that workflow in the image for reviews (CI_BOT_TEST_IMAGE, or `ci-bot:test` of `python -m tests.container.build`) against
the GitHub stand-in. The clone is copied, and no file of the copy is edited by hand.

Not in it: reading, GitHub's queue, and the pull of the image, which bench_pull measures. It prints the
rows of docs/numbers.md, and what pip brings beside a SQLMesh that is there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.act import act
from tests.act.machine import OURS, ActMachine, Images
from tests.benchmarks.timed_command import say
from tests.container.engine import find_engine
from tests.container.fixtures import FOR_REVIEWS, ROOT, TAG
from tests.github_standin.local_git import LocalGit
from tests.github_standin.parts import locate
from tests.github_standin.standin import GitHubStandin
from tests.maven import parts_directory

RELEASE = f"{OURS}@{'ab' * 20} # v1.2.3"
PERMISSIONS = {"contents": "read", "pull-requests": "write"}
MODEL = "MODEL (name first_comment.added, kind FULL);\n\nSELECT CAST(1 AS INT) AS id\n"
GOAL_SECONDS, GOAL_MB = 300, 60
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Installed:
    """What pip has done: seconds for SQLMesh alone and for the wheel beside it, and bytes of both."""

    sqlmesh_seconds: float
    wheel_seconds: float
    sqlmesh_bytes: int
    wheel_bytes: int
    program: Path


def install(home: Path, sqlmesh: str) -> Installed:
    """A fresh environment with SQLMesh, and the wheel of this checkout beside it."""
    package = home / "package"
    run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", package, ROOT]
    )
    (wheel,) = package.glob("*.whl")
    run([sys.executable, "-m", "venv", home / "env"])
    pip = [home / "env" / "bin" / "python", "-m", "pip", "install", "--quiet", "--prefer-binary"]
    before = size_of(home / "env")
    first = run([*pip, f"sqlmesh=={sqlmesh}"])
    between = size_of(home / "env")
    second = run([*pip, wheel])
    after = size_of(home / "env")
    program = home / "env" / "bin" / "ci-bot"
    return Installed(first, second, between - before, after - between, program)


def run(command: Sequence[object], cwd: Path | None = None) -> float:
    """Seconds of a command.

    Raises:
        RuntimeError: it failed; with its last words.
    """
    began = time.perf_counter()
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return time.perf_counter() - began


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file())


def copy_project(clone: Path, root: Path) -> LocalGit:
    """The files of a clone as the main branch of a repository of its own."""
    shutil.copytree(clone, root, ignore=shutil.ignore_patterns(".git"))
    git = LocalGit(root)
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git.commit({}, "The project")
    return git


def review(git: LocalGit, standin: GitHubStandin, home: Path, project: str) -> tuple[float, str]:
    """Seconds from the push of the branch to the posted comment, and the comment."""
    engine = find_engine(os.environ)
    image = os.environ.get("CI_BOT_TEST_IMAGE") or TAG
    repo = standin.make_repo()
    began = time.perf_counter()
    git("checkout", "-q", "-b", "work")
    git.commit({f"{project}/models/first_comment.sql": MODEL.encode()}, "Review plans")
    head = git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge work into main", "work")
    merged = git("rev-parse", "HEAD")
    repo.push_git(git.root, {"main": "main", "work": "work"})
    pull = repo.create_pull("work")
    repo.push_git(git.root, {f"refs/pull/{pull.number}/merge": merged})
    pull.push(head, merge_sha=merged, base_sha=git("rev-parse", "main"))
    git("update-ref", f"refs/pull/{pull.number}/merge", merged)
    machine = ActMachine(
        program=act(os.environ),
        images=Images(full=image, review=image + FOR_REVIEWS),
        engine=engine.host,
        api_url=standin.url,
        repository=repo.full_name,
        origin=git.root,
        mounts=[],
        edits={},
        home=home,
        workflows=git.root / ".github" / "workflows",
    )
    ran = machine.run(
        "review.yml",
        "pull_request",
        pull.event("opened"),
        token=standin.actions_token(repo, PERMISSIONS),
        sha=merged,
        run_id=repo.add_run(repo.add_workflow("review.yml"), "work", event="pull_request").id,
        timeout=600,
    )
    comments = pull.comments_by("github-actions[bot]")
    if ran.exit_code or not comments:
        raise RuntimeError(f"no comment: {ran.text[-4000:]}")
    return time.perf_counter() - began, str(comments[0]["body"])


def main(clone: Path, project: str, sqlmesh: str) -> None:
    with tempfile.TemporaryDirectory(prefix="ci-bot-first-") as directory:
        home = Path(directory)
        # The container's accounts have to pass.
        home.chmod(0o755)
        found = install(home, sqlmesh)
        git = copy_project(clone, home / "origin")
        init = [
            found.program,
            "init",
            "--level",
            "review",
            "--project",
            project,
            "--action",
            RELEASE,
        ]
        initialized = run(init, git.root)
        with GitHubStandin(locate(parts_directory(os.environ)), home) as standin:
            reviewed, comment = review(git, standin, home, project)
    say(f"<!-- {json.dumps(comment.partition('## ')[2].partition(chr(10))[0])} -->")
    total = found.sqlmesh_seconds + found.wheel_seconds + initialized + reviewed
    say(
        "| from a clone of a public project to the first comment: `pip install`, `ci-bot init "
        "--pull-request`; no file is edited by hand | nothing | at most "
        f"{GOAL_SECONDS // 60} minutes, three commands | {total:.0f} s: pip "
        f"{found.sqlmesh_seconds + found.wheel_seconds:.0f} s ({found.wheel_seconds:.0f} s if "
        f"SQLMesh is there), init {initialized:.1f} s, from the push to the comment "
        f"{reviewed:.0f} s; without GitHub's queue and the pull of the image |"
    )
    say(
        f"| installed beside SQLMesh {sqlmesh}, for reviews | SQLMesh alone, "
        f"{found.sqlmesh_bytes / _MEGABYTE:.0f} MB | at most {GOAL_MB} MB more | "
        f"{found.wheel_bytes / _MEGABYTE:.0f} MB more |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--project", default=".")
    parser.add_argument("--sqlmesh", default="0.236.4")
    options = parser.parse_args()
    main(options.clone, options.project, options.sqlmesh)
