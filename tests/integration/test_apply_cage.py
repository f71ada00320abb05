"""An apply's worker in the cage: it has the warehouse's rights for longer than a review, and its
models' code runs. What a review's worker cannot reach, it cannot reach either.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.sandbox import SandboxedWorkerTimedOut, SandboxVariables
from ci_bot.bot.sandbox.deadline import SandboxCancelToken
from ci_bot.bot.sandbox.launch import build_sandboxed_environment
from ci_bot.protocol.apply_report import ApplyDocument
from ci_bot.protocol.messages import ApplyRequest
from tests.conftest import missing
from tests.integration.test_worker_process import (
    TOKEN,
    WORKER,
    Cage,
    ground,
    make_cage,
    started_from,
    token,
    worker_python,
)
from tests.worker import alive

__all__ = ["ground", "token"]

# What a runner hands to a job, beside the token of the action's input.
OF_THE_JOB = {
    "ACTIONS_RUNTIME_TOKEN": "runtime-credential-of-the-job",
    "ACTIONS_RUNTIME_URL": "https://pipelines.example/",
    "ACTIONS_CACHE_URL": "https://cache.example/",
    "ACTIONS_RESULTS_URL": "https://results.example/",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "oidc-credential-of-the-job",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://oidc.example/",
    "GITHUB_TOKEN": TOKEN,
    "GH_TOKEN": TOKEN,
    "DOCKER_HOST": "unix:///var/run/docker.sock",
    "LD_PRELOAD": "/evil.so",
}


@pytest.fixture
def cage(ground: Path, token: SandboxCancelToken) -> Iterator[Cage]:
    """The cage of the container around the worker of an apply, for a checkout with traps."""
    if os.geteuid() != 0:
        missing("changing users needs root")
    for made in make_cage(ground, WORKER, token):
        made.asks = ApplyRequest
        yield made


def test_apply__is_answered(cage: Cage) -> None:
    answer = cage.run("answer")
    assert isinstance(answer, ApplyDocument)
    assert answer.result == "nothing_to_apply"


def test_apply__gets_nothing_of_the_job(cage: Cage) -> None:
    environment = build_sandboxed_environment(
        {**os.environ, **OF_THE_JOB, "SPARK_MASTER": "local[1]"},
        selection=SandboxVariables(),
        python=worker_python(),
        home=str(cage.workspace.home),
        temporary=str(cage.workspace.temporary),
        secrets=[TOKEN],
    )
    cage.launch = replace(cage.launch, variables=environment.variables)
    cage.run("environment")
    seen = cage.found()["environ"]
    assert seen["SPARK_MASTER"] == "local[1]", "what Spark needs comes through"
    assert OF_THE_JOB.keys() & seen.keys() == set()
    assert not any(value in seen.values() for value in OF_THE_JOB.values())


def test_apply__reaches_no_socket_no_process_and_no_file_of_the_runner(
    cage: Cage, ground: Path
) -> None:
    commands = ground / "file_commands"
    commands.mkdir()
    files = [commands / name for name in ("set_env", "set_output", "add_path", "summary")]
    for file in files:
        file.touch(mode=0o644)
    private = ground / "private.json"
    private.touch(mode=0o600)
    device = ground / "device"
    try:
        os.mknod(device, 0o600 | stat.S_IFBLK, os.makedev(8, 0))
    except OSError:
        device.touch(mode=0o600)  # a container may not make one, and then holds none
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(ground / "docker.sock"))
        engine.listen()
        (ground / "docker.sock").chmod(0o660)
        cage.with_probe(
            json.dumps(
                {
                    "write": [
                        *map(str, files),
                        str(ground / "checkout" / "model.sql"),
                        str(device),
                    ],
                    "read": [str(private), str(device), str(cage.workspace.channel)],
                    "sockets": [str(ground / "docker.sock")],
                    "programs": [],
                    "root": str(cage.workspace.root),
                }
            )
        )
        cage.run("break_out")
    facts = cage.found()
    assert facts.pop("new privileges") == "1"
    assert f"environ of {os.getpid()}" in facts
    assert {name: how for name, how in facts.items() if how.startswith("succeeded")} == {}
    assert all(file.read_bytes() == b"" for file in files)


def test_apply__that_forks_without_end__leaves_no_process(cage: Cage, ground: Path) -> None:
    with pytest.raises(SandboxedWorkerTimedOut):
        cage.run("fork_storm", seconds=3.0, grace_seconds=0.1)
    assert started_from(ground) == []
    cage.run("fork_limit", processes=40, linger_seconds=0.0)
    assert cage.found() < 40
    assert started_from(ground) == []


def test_apply__that_outlives_its_time__is_killed_with_its_family(cage: Cage) -> None:
    begun = time.monotonic()
    with pytest.raises(SandboxedWorkerTimedOut):
        cage.run("deaf", seconds=3.0, grace_seconds=0.5)
    assert time.monotonic() - begun < 30
    assert alive(cage.pids()) == []


def test_apply__of_a_checkout_with_traps__takes_none_of_them(
    ground: Path, token: SandboxCancelToken
) -> None:
    if os.geteuid() != 0:
        missing("changing users needs root")
    secret = ground / "secret"
    secret.write_text("of another job")
    secret.chmod(0o644)
    checkout = ground / "checkout"
    checkout.mkdir()
    os.mkfifo(checkout / "pipe.sql")
    (checkout / "out.sql").symlink_to(secret)
    (checkout / "up").symlink_to("..")
    (checkout / "loop.sql").symlink_to("loop.sql")
    (checkout / "endless.sql").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(checkout / "socket.sql"))
        for made in make_cage(ground, WORKER, token):
            made.asks = ApplyRequest
            assert isinstance(made.run("answer"), ApplyDocument)
            copied = {path.name for path in made.workspace.repository.iterdir()}
            assert "model.sql" in copied
            traps = {"pipe.sql", "out.sql", "up", "endless.sql", "socket.sql"}
            assert copied & traps == set()
