"""The hostile project in the built image, started the way GitHub's runner starts it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import nights
from tests.container.fixtures import action, engine, image
from tests.container.runner import Action, Outcome
from tests.oracle.runner import RunnerLog
from tests.security.probe_job import (
    RUNTIME_TOKEN,
    SECRET,
    ProbeRepository,
    Targets,
    make_repository,
    probed,
)
from tests.security.test_hostile_probe import OURS
from tests.unit.report.dom import parse

__all__ = ["action", "engine", "image"]

pytestmark = pytest.mark.container

FILE_COMMANDS = ("output", "step_summary", "env", "path", "state")
TARGETS = Targets(
    write=[
        *(f"/github/file_commands/{name}" for name in FILE_COMMANDS),
        "/github/workspace/planted",
        "/github/workspace/.git/config",
        "/github/workflow/event.json",
        "/github/home/planted",
        "/github/runner_temp/planted",
        "/opt/ci-bot/planted",
        "/usr/local/planted",
    ],
    read=["/proc/1/environ", "/proc/1/mem", "/github/runner_temp/private/secret"],
    sockets=["/var/run/docker.sock"],
)


@dataclass(frozen=True)
class WithSocket(Action):
    """A runner hands its Docker socket to every container action."""

    def _options(self, *given: object) -> list[str]:
        options: list[str] = super()._options(*given)
        return [*options, "--volume", f"{self.home}/docker.sock:/var/run/docker.sock"]


@dataclass(frozen=True)
class Bounded(Action):
    """A runner whose containers get few processes and a small disk."""

    def _options(self, *given: object) -> list[str]:
        options: list[str] = super()._options(*given)
        return [*options, "--pids-limit", "120", "--tmpfs", "/tmp:size=200m,mode=1777,exec"]


@contextmanager
def docker_socket(path: Path) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        path.chmod(0o660)
        yield


def run(made: Action, *, forge: str | None = None) -> tuple[Outcome, ProbeRepository]:
    private = made.home / "runner_temp" / "private"
    private.mkdir()
    (private / "secret").write_text("of another job")
    private.chmod(0o700)
    # Where the link leads is said as the container sees it.
    repository = make_repository(
        made.workspace,
        TARGETS,
        forge=forge,
        outside=Path("/github/runner_temp/private/secret"),
    )
    job = WithSocket(made.engine, made.image, made.metadata, made.home)
    variables: Mapping[str, str] = {
        "ACTIONS_RUNTIME_TOKEN": RUNTIME_TOKEN,
        "GITHUB_TOKEN": SECRET,
        "GITHUB_SHA": str(repository.facts.merge_sha),
        # A job may be full of these; none may reach the worker.
        "LD_PRELOAD": "",
        "DB_PASSWORD": "of-the-warehouse-0123",
    }
    with docker_socket(made.home / "docker.sock"):
        outcome = job.run("pull_request", repository.event(), {"github-token": SECRET}, variables)
    return outcome, repository


def assert_harmless(outcome: Outcome, made: Action, repository: ProbeRepository) -> None:
    for name in ("env", "path", "state"):
        assert (made.home / "file_commands" / name).read_text("utf-8") == ""
    assert not (made.workspace / "planted").exists()
    assert not repository.sprung.exists(), "git has run a program of the checkout"
    assert list((made.home / "home").iterdir()) == []
    assert [path.name for path in (made.home / "runner_temp").iterdir()] == ["private"]
    commands = RunnerLog().read(outcome.log).commands
    assert {command.name for command in commands} <= OURS
    assert "evil" not in {command.data.strip() for command in commands}
    shown = [line for line in outcome.log.splitlines() if not line.startswith("::add-mask::")]
    readable = "\n".join([*shown, outcome.summary, *outcome.outputs.values()])
    for secret in (SECRET, RUNTIME_TOKEN, "of-the-warehouse-0123"):
        assert secret not in readable


@pytest.fixture
def job(action: Action) -> Action:
    if os.geteuid() != 0:
        from tests.conftest import missing

        missing("to give the checkout to the runner's account needs root")
    return action


def test_probe__in_the_image_everything_is_stopped(job: Action) -> None:
    outcome, repository = run(job)

    assert "PROBE jinja ran" in outcome.log, outcome.log
    assert "PROBE end" in outcome.log, outcome.log
    attempts = probed(outcome.log)
    assert len(attempts) >= 25
    assert "SUCCEEDED" not in attempts.values(), attempts
    assert_harmless(outcome, job, repository)
    assert outcome.outputs["environment"] == "pr_7"
    assert outcome.outputs["decision"] == "no_go", outcome.log
    assert "env-file-tracked" in outcome.log


@pytest.mark.parametrize("kind", nights.cases(["identity", "oversize"], by_day=["identity"]))
def test_probe__in_the_image_a_forged_answer_is_refused(job: Action, kind: str) -> None:
    outcome, repository = run(job, forge=kind)

    assert_harmless(outcome, job, repository)
    assert outcome.exit_code == 1
    assert outcome.outputs["reason-code"] == "answer_refused", outcome.log
    assert "pr_8" not in outcome.log + outcome.summary


def test_probe__in_the_image_markup_stays_text(job: Action) -> None:
    outcome, repository = run(job, forge="markup")

    assert_harmless(outcome, job, repository)
    page = parse(outcome.summary)
    assert page.tags["img"] == page.tags["script"] == 0
    assert page.unclosed == [] and page.stray == []
    assert not [text for text in page.plain if "@everyone" in text or "onerror" in text]


def run_bounded(
    made: Action, *, forge: str | None = None, large: int = 0
) -> tuple[Outcome, ProbeRepository]:
    """A run where processes and disk are short; `large`: bytes of a database in the checkout."""
    repository = make_repository(
        made.workspace, Targets([], []), forge=forge, outside=Path("/github/runner_temp/private")
    )
    if large:
        with (made.workspace / "big.duckdb").open("wb") as file:
            file.truncate(large)
    job = Bounded(made.engine, made.image, made.metadata, made.home)
    variables = {"GITHUB_TOKEN": SECRET, "GITHUB_SHA": str(repository.facts.merge_sha)}
    return job.run("pull_request", repository.event(), {"github-token": SECRET}, variables), (
        repository
    )


def test_storm__that_takes_all_processes__ends_with_one_sentence(job: Action) -> None:
    outcome, _ = run_bounded(job, forge="storm")

    assert "PROBE storm: stopped by" in outcome.log, outcome.log
    assert (outcome.exit_code, outcome.outputs["decision"]) == (1, "no_go"), outcome.log
    assert outcome.outputs["reason-code"] == "no_more_processes", outcome.log
    assert "could start no more processes" in outcome.summary


def test_checkout__that_the_disk_has_no_room_for__is_one_sentence(job: Action) -> None:
    outcome, _ = run_bounded(job, large=10 * 1024**3)

    assert outcome.outputs["reason-code"] == "disk_full", outcome.log
    assert outcome.exit_code == 2
    assert "`big.duckdb` has 10,240 MiB" in outcome.log
    assert "This is a defect" not in outcome.log
