"""The life of a pull request in the built image, started as GitHub's runner starts it.

The real engine, the real image, the GitHub stand-in on the host's loopback; the worker runs as the
image's unprivileged account, on a copy of the checkout.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from tests.container.engine import Engine
from tests.container.runner import RUNNER_UID
from tests.e2e.job import Job, Outcome, Runner
from tests.e2e.scene import Scene
from tests.github_standin.standin import GitHubStandin
from tests.oracle.runner import read_file_command
from tests.projects import Shop

pytestmark = [pytest.mark.container, pytest.mark.standin, pytest.mark.spark, pytest.mark.slow]

FILE_COMMANDS = ("output", "step_summary", "env", "path", "state")
INSIDE = {
    "workspace": "/github/workspace",
    "home": "/github/home",
    "workflow": "/github/workflow",
    "file_commands": "/github/file_commands",
    "runner_temp": "/github/runner_temp",
}


class ImageRunner(Runner):
    """Runs jobs in the image. `warehouse` is mounted where the project's configuration names it."""

    def __init__(
        self, engine: Engine, image: str, warehouse: Path, *, api_url: str, repository: str,
        token: str, home: Path, network: str = "host",
    ) -> None:  # fmt: skip
        super().__init__(api_url=api_url, repository=repository, token=token, home=home)
        self._engine = engine
        self._image = image
        self._warehouse = warehouse
        self._network = network
        self._variables = {"GITHUB_API_URL": api_url, "GITHUB_REPOSITORY": repository}
        self._place = home
        self._number = 0

    def run(self, job: Job, workspace: Path, *, timeout: float = 300) -> Outcome:
        self._number += 1
        home = self._place / f"container-{self._number}"
        for name in INSIDE:
            if name != "workspace":
                (home / name).mkdir(parents=True)
        for name in FILE_COMMANDS:
            (home / "file_commands" / name).touch()
        (home / "workflow" / "event.json").write_text(json.dumps(job.payload), encoding="utf-8")
        hand_over(workspace)
        open_up(self._warehouse)
        begun = time.monotonic()
        done = self._engine.run(
            self._image,
            "run",
            options=self._docker(job, workspace, home),
            network=self._network,
            check=False,
            timeout=timeout,
        )
        return Outcome(
            exit_code=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            seconds=time.monotonic() - begun,
            outputs=dict(read_file_command((home / "file_commands" / "output").read_text("utf-8"))),
            summary=(home / "file_commands" / "step_summary").read_text("utf-8"),
            workspace=workspace,
        )

    def _docker(self, job: Job, workspace: Path, home: Path) -> list[str]:
        options = ["--workdir", INSIDE["workspace"]]
        for name, inside in INSIDE.items():
            outside = workspace if name == "workspace" else home / name
            options += ["--volume", f"{outside}:{inside}"]
        options += ["--volume", f"{self._warehouse}:{self._warehouse}"]
        variables = {
            "ACTIONS_RUNTIME_TOKEN": "runtime-credential-0123456789",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTOR": job.actor,
            "GITHUB_EVENT_NAME": job.event,
            "GITHUB_EVENT_PATH": "/github/workflow/event.json",
            "GITHUB_OUTPUT": "/github/file_commands/output",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": str(job.run_id),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": job.sha,
            "GITHUB_STEP_SUMMARY": "/github/file_commands/step_summary",
            "GITHUB_TRIGGERING_ACTOR": job.actor,
            "GITHUB_WORKSPACE": INSIDE["workspace"],
            "HOME": "/github/home",
            **self._variables,
            **self.inputs(job.inputs),
            **job.variables,
        }
        for name, value in variables.items():
            options += ["--env", f"{name}={value}"]
        return options


def hand_over(workspace: Path) -> None:
    """The checkout belongs to the account of GitHub's machines, not to root."""
    for path in (workspace, *workspace.rglob("*")):
        os.chown(path, RUNNER_UID, RUNNER_UID, follow_symlinks=False)


def open_up(directory: Path) -> None:
    """A warehouse that every account may use, as a service on the network would be."""
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def add_days(shop: Shop) -> None:
    """A column of this test's own: the warehouse is shared, and built tables are not built again."""
    shop.edit(
        "models/revenue.sql",
        "SUM(o.amount) AS BIGINT) AS revenue",
        "SUM(o.amount) AS BIGINT) AS revenue,\n"
        "  CAST(COUNT(DISTINCT o.order_date) AS BIGINT) AS days",
    )
    shop.edit("tests/test_revenue.yaml", "revenue: 15}", "revenue: 15, days: 2}")


@pytest.fixture
def scene(
    github_standin: GitHubStandin, built_shop: Shop, tmp_path: Path, engine: Engine, image: str
) -> Scene:
    return scene_in_image(github_standin, built_shop, tmp_path, engine, image)


def scene_in_image(
    standin: GitHubStandin,
    shop: Shop,
    home: Path,
    engine: Engine,
    image: str,
    network: str = "host",
) -> Scene:
    """The end-to-end scene with the image in place of a bare process."""
    found = Scene(standin, shop, home)
    found.runner = ImageRunner(
        engine,
        image,
        shop.root,
        api_url=standin.url,
        repository=found.repo.full_name,
        token=found.token,
        home=home,
        network=network,
    )
    return found


def test_life_in_the_image__opened_applied_merged(scene: Scene) -> None:
    live_in_image(scene)


def live_in_image(scene: Scene) -> None:
    """A pull request is opened, applied and merged."""
    change = scene.open("in-the-image", add_days, number=21)

    opened = change.review("opened")

    assert opened.exit_code == 0, f"{opened.stdout}\n{opened.stderr}"
    assert opened.outputs["decision"] == "go"
    plan = opened.outputs["plan-id"]
    comment = change.sticky_id()
    assert "revenue" in change.sticky()

    applied = change.dispatch({"plan-id": plan})

    assert applied.exit_code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert applied.outputs["reason-code"] == "applied"
    document = applied.document("apply")
    assert {view["view"] for view in document["views"] if view["resolves"]} == {
        "shop__pr_21.revenue",
        "shop__pr_21.top_customers",
    }
    assert change.marker().phase == "applied"

    change.merge()
    removed = change.closed("pull_request_target")

    assert removed.exit_code == 0, f"{removed.stdout}\n{removed.stderr}"
    assert removed.document("cleanup")["schemas_dropped"] == ["shop__pr_21"]
    assert change.marker().phase == "closed"
    assert change.sticky_id() == comment
    for outcome in (opened, applied, removed):
        assert scene.token not in outcome.readable
