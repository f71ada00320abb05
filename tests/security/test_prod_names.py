"""No name leads to prod: the bot asks no worker, and a worker that is asked all the same opens nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ci_bot.bot.worker_client.client import WorkerClient
from ci_bot.protocol.base import Failure
from ci_bot.protocol.messages import (
    ApplyRequest,
    CleanupRequest,
    FailedAnswer,
    Owner,
    ReviewRequest,
)
from ci_bot.protocol.plan_identity import GivenFlags
from tests.conftest import REPOSITORY
from tests.worker import Client

ASKS: dict[str, type[Any]] = {
    "apply": ApplyRequest,
    "cleanup": CleanupRequest,
    "review": ReviewRequest,
}


def command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command on a directory without a project: whoever opens it fails on that."""
    return subprocess.run(
        [sys.executable, "-m", "ci_bot", *arguments, "--project", str(directory)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("name", ["prod", "PROD", " prod", "Prod "])
@pytest.mark.parametrize("activity", ["apply", "cleanup"])
def test_command__with_a_name_of_prod__is_refused(tmp_path: Path, activity: str, name: str) -> None:
    ended = command(tmp_path, activity, "--environment", name, "--format", "json")
    assert ended.returncode == 3, ended.stderr
    document = json.loads(ended.stdout)
    assert document["result"] == "refused"
    assert document["environment"] == name.strip()
    assert "Traceback" not in ended.stderr
    assert "defect" not in ended.stdout


@pytest.mark.parametrize(
    ("activity", "name"),
    [
        ("review", "prod"),
        ("review", " PROD"),
        ("review", ""),
        ("review", "a b"),
        ("apply", ""),
        ("apply", "pr 7"),
        ("apply", "x" * 300),
        ("cleanup", ""),
    ],
)
def test_command__with_a_name_that_is_none__is_bad_input(
    tmp_path: Path, activity: str, name: str
) -> None:
    ended = command(tmp_path, activity, "--environment", name)
    assert ended.returncode == 2, ended.stderr
    assert ended.stdout == ""
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 2, "what is wrong, and what to do"
    assert lines[0].startswith("ci-bot: ")


@pytest.mark.parametrize("activity", ["cleanup", "sweep"])
def test_command__with_a_prefix_that_is_none__is_bad_input(tmp_path: Path, activity: str) -> None:
    more = ["--environment", "pr_7"] if activity == "cleanup" else []
    ended = command(tmp_path, activity, "--environment-prefix", "PR", *more)
    assert ended.returncode == 2
    assert "`--environment-prefix` must be lower case" in ended.stderr
    assert "got 'PR'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("activity", "name", "pull", "exit_code"),
    [
        ("apply", "prod", 7, 3),
        ("apply", "PROD", None, 3),
        ("apply", " prod", None, 3),
        ("apply", "pr_8", 7, 3),
        ("cleanup", "prod", 7, 3),
        ("cleanup", "dev", None, 3),
        ("review", "prod", 7, 2),
    ],
)
def test_worker__that_is_asked_for_it__opens_nothing(
    tmp_path: Path, activity: str, name: str, pull: int | None, exit_code: int
) -> None:
    def ask(bench: WorkerClient) -> Any:
        kind = ASKS[activity]
        # As a bot would write it that does not look at names.
        request = kind.model_construct(
            projects=[str(tmp_path)],
            workplace=bench.workplace,
            owner=Owner(name="octo/shop", pr_number=pull),
            environment=name,
            **({} if activity == "cleanup" else {"flags": GivenFlags()}),
        )
        answered_by = getattr(bench, f"request_{activity}")
        return answered_by(request, *([None] if activity == "review" else []))

    client = Client(tmp_path)
    failure = client._with(ask)

    failure = failure.failure if isinstance(failure, FailedAnswer) else failure
    assert isinstance(failure, Failure), failure
    assert failure.exit_code == exit_code
    assert client.heard.progress == []
    assert list(tmp_path.iterdir()) == []
