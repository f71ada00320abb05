"""What `ci-bot init` writes for level review runs whole: by act, in the image for reviews.

From nothing to the first comment: a team's repository, one command, one pull request. No secret, no
variable and no edit by hand; the project's own configuration, however it reads its variables.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.act.machine import OURS, ActMachine, Images
from tests.container.engine import Engine
from tests.github_standin.local_git import LocalGit
from tests.github_standin.standin import GitHubStandin
from tests.setup_layouts import LAYOUTS, Clone

pytestmark = [
    pytest.mark.standin,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a workspace of another owner needs root"),
]

RELEASE = f"{OURS}@{'ab' * 20} # v1.2.3"
PERMISSIONS = {"contents": "read", "pull-requests": "write"}
MODEL = "MODEL (name shop.added, kind FULL, owner sales, audits (not_null(columns := (id))));\n\nSELECT CAST(1 AS INT) AS id\n"
# With the directory of the project.
TRIED = {"company": "", "duckdb": "", "python": "", "flights": "warehouse/"}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("layout", TRIED)
def test_review__of_what_init_has_written_comments_on_the_first_pull_request(
    layout: str,
    github_standin: GitHubStandin,
    tmp_path: Path,
    engine: Engine,
    image: str,
    review_image: str,
    act_program: Path,
) -> None:
    repo = github_standin.make_repo()
    git = LocalGit(tmp_path / "origin")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git.commit({path: text.encode() for path, text in LAYOUTS[layout]().items()}, "The project")

    told = Clone(git.root).init(action=RELEASE)

    git.commit({}, "Review the SQLMesh plans of pull requests")
    git("checkout", "-q", "-b", "work")
    git.commit({f"{TRIED[layout]}models/added.sql": MODEL.encode()}, "A model more")
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
        program=act_program,
        images=Images(full=image, review=review_image),
        engine=engine.host,
        api_url=github_standin.url,
        repository=repo.full_name,
        origin=git.root,
        mounts=[],
        edits={},
        home=tmp_path,
        workflows=git.root / ".github" / "workflows",
    )

    ran = machine.run(
        "review.yml",
        "pull_request",
        pull.event("opened"),
        token=github_standin.actions_token(repo, PERMISSIONS),
        sha=merged,
        run_id=repo.add_run(repo.add_workflow("review.yml"), "work", event="pull_request").id,
    )

    assert "gh secret" not in told
    assert ran.exit_code == 0, ran.text[-9000:]
    assert set(ran.results.values()) == {"success"}
    report = json.loads(ran.artifact()["report.json"])
    assert report["baseline"] == "base-branch"
    (comment,) = pull.comments_by("github-actions[bot]")
    assert "added" in comment["body"], comment["body"]
