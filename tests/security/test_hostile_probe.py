"""A hostile project goes through `ci-bot run`, and nothing that it tries comes true.

Here as a process, with the worker under a user of its own; test_hostile_container.py does the same
in the built image. Needs root, without which there is no other user.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, missing
from tests.e2e.job import Job, Runner
from tests.integration.test_worker_process import worker_python
from tests.oracle.runner import RunnerLog, read_file_command
from tests.security.api import refusing_api
from tests.security.probe_job import (
    DOTENV,
    RUNTIME_TOKEN,
    SECRET,
    ProbeRepository,
    Targets,
    make_repository,
    probed,
)
from tests.unit.report.dom import parse

WORKER = (61_000 + os.getpid() % 4_000, 61_000)
FILE_COMMANDS = ("output", "step_summary", "env", "path", "state")
GRANDCHILD = b"ci-bot-probe-grandchild"
OURS = {"add-mask", "stop-commands", "notice", "warning", "error", "group", "endgroup", "debug"}


@dataclass
class Ran:
    """How the run ended and what it left."""

    exit_code: int
    stdout: str
    stderr: str
    repository: ProbeRepository
    commands: Path

    @property
    def attempts(self) -> dict[str, str]:
        return probed(self.stdout)

    def file(self, name: str) -> str:
        return (self.commands / name).read_text("utf-8")

    @property
    def outputs(self) -> dict[str, str]:
        return dict(read_file_command(self.file("output")))


@pytest.fixture
def ground() -> Iterator[Path]:
    """A directory that the worker's user can walk through, as on a runner."""
    if os.geteuid() != 0:
        missing("the worker's own user needs root")
    with tempfile.TemporaryDirectory(prefix="ci-bot-probe-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def interpreter(ground: Path) -> str:
    """A virtual environment with this one's packages, on a Python that the worker may start."""
    home = ground / "python"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "python3.11").mkdir(parents=True)
    program = Path(worker_python()).resolve()
    (home / "bin" / "python").symlink_to(program)
    (home / "lib" / "python3.11" / "site-packages").symlink_to(sysconfig.get_path("purelib"))
    (home / "pyvenv.cfg").write_text(f"home = {program.parent}\n")
    return str(home / "bin" / "python")


def run(
    ground: Path,
    *,
    forge: str | None = None,
    api_url: str = "https://api.github.com",
    fork: bool = True,
    dotenv: Mapping[str, str] = DOTENV,
    inputs: Mapping[str, str] | None = None,
) -> Ran:
    commands, runner_temp = ground / "commands", ground / "tmp"
    for directory in (commands, runner_temp, ground / "home"):
        directory.mkdir()
    runner_temp.chmod(0o755)
    for name in FILE_COMMANDS:
        (commands / name).touch()
    outside = ground / "private" / "secret"
    outside.parent.mkdir(mode=0o700)
    outside.write_text("of another job")
    python = interpreter(ground)
    with socket.socket(socket.AF_UNIX) as docker:
        docker.bind(str(ground / "docker.sock"))
        docker.listen()
        (ground / "docker.sock").chmod(0o660)
        targets = Targets(
            write=[
                *(str(commands / name) for name in FILE_COMMANDS),
                str(ground / "workspace" / ".git" / "config"),
                str(ground / "workspace" / "planted"),
                str(REPOSITORY / "ci_bot" / "planted.py"),
            ],
            read=[str(outside), f"/proc/{os.getpid()}/environ"],
            sockets=[str(ground / "docker.sock")],
        )
        repository = make_repository(
            ground / "workspace", targets, forge=forge, outside=outside, fork=fork, dotenv=dotenv
        )
        (ground / "event.json").write_text(json.dumps(repository.event()))
        runner = Runner(api_url=api_url, repository="acme/warehouse", token=SECRET, home=ground)
        job = Job(
            "pull_request",
            "",
            sha=str(repository.facts.merge_sha),
            inputs=inputs or {},
            variables={
                "ACTIONS_RUNTIME_TOKEN": RUNTIME_TOKEN,
                "GITHUB_TOKEN": SECRET,
                "RUNNER_TEMP": str(runner_temp),
                "TMPDIR": str(runner_temp),
                "HOME": str(ground / "home"),
                **{f"GITHUB_{name.upper()}": str(commands / name) for name in FILE_COMMANDS},
            },
        )
        environment = runner._environment(job, ground, ground / "workspace", ground / "event.json")
        done = subprocess.run(
            [sys.executable, "-m", "tests.security.caged_run", *map(str, WORKER), python],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=240,
            check=False,
        )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode(), repository, commands)


def assert_harmless(ran: Ran) -> None:
    """What holds after every run, whatever the project did."""
    assert ran.file("env") == ran.file("path") == ran.file("state") == ""
    assert not (ran.repository.root / "planted").exists()
    assert not ran.repository.sprung.exists(), "git has run a program of the checkout"
    assert not Path("/tmp/ci-bot-probe-pickle").exists(), "a planted pickle was loaded"
    log = RunnerLog().read(ran.stdout)
    assert {command.name for command in log.commands} <= OURS
    told = [command for command in log.commands if command.name != "add-mask"]
    assert "evil" not in {command.data for command in log.commands}
    assert not [command for command in told if command.data.strip() == "evil"]
    assert RunnerLog().read(ran.stderr).commands == []
    for secret in (SECRET, RUNTIME_TOKEN):
        shown = [line for line in ran.stdout.splitlines() if not line.startswith("::add-mask::")]
        assert secret not in "\n".join([*shown, ran.stderr, *ran.outputs.values()])
        assert secret not in ran.file("step_summary")
    assert not processes_with(GRANDCHILD), "a process of the project outlived the run"
    assert list((ran.commands.parent / "tmp").iterdir()) == []


def processes_with(word: bytes) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and process.stat().st_uid == WORKER[0]:
            try:
                if word in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def test_probe__everything_that_it_tries_is_stopped(ground: Path) -> None:
    ran = run(ground)

    assert "PROBE jinja ran" in ran.stdout, f"{ran.stdout}\n{ran.stderr}"  # code, but in the cage
    assert "PROBE end" in ran.stdout, ran.stdout
    assert len(ran.attempts) >= 20, ran.attempts
    assert "SUCCEEDED" not in ran.attempts.values(), ran.attempts
    assert_harmless(ran)
    # It was reviewed all the same, and its tracked .env is a blocker.
    assert ran.exit_code == 1
    assert ran.outputs["decision"] == "no_go"
    assert "env-file-tracked" in ran.stdout
    assert ran.outputs["environment"] == "pr_7"


@pytest.mark.parametrize("kind", ["identity", "oversize"])
def test_probe__a_forged_answer_is_refused_and_nothing_of_it_is_shown(
    ground: Path, kind: str
) -> None:
    ran = run(ground, forge=kind)

    assert_harmless(ran)
    assert ran.exit_code == 1
    assert ran.outputs["reason-code"] == "answer_refused"
    assert ran.outputs["environment"] == "pr_7"
    assert "pr_8" not in ran.stdout + ran.file("step_summary") + str(ran.outputs)


def test_probe__markup_in_a_believed_answer_stays_text(ground: Path) -> None:
    ran = run(ground, forge="markup")

    assert_harmless(ran)
    page = parse(ran.file("step_summary"))
    assert "onerror" in " ".join(page.under("code") + page.under("pre")), "the name is not shown"
    assert page.tags["img"] == page.tags["script"] == 0
    assert page.unclosed == [] and page.stray == []
    assert not any("evil.example" in url for url in page.links)
    assert not [text for text in page.plain if "@everyone" in text or "onerror" in text]


def test_probe__its_dotenv_does_not_move_the_bots_requests(ground: Path) -> None:
    with refusing_api() as true, refusing_api() as false:
        dotenv = {**DOTENV, "GITHUB_API_URL": false.url}
        ran = run(
            ground,
            api_url=true.url,
            fork=False,
            dotenv=dotenv,
            inputs={"baseline": "base-branch"},
        )

    assert_harmless(ran)
    assert "PROBE end" in ran.stdout
    assert ran.outputs["decision"] == "no_go"
    assert false.asked == []
    assert true.asked
    assert all(SECRET in authorization for _, authorization in true.asked)
