"""One job of a workflow: the action's process as GitHub's runner starts it, and what it left.

Inputs go through action.yml itself, so that a run here also tests its mapping. Around every run the
promises are checked that hold for all of them: no secret in anything that can be read later, no
traceback in front of a person, no private directory left behind.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from ci_bot.bot.actions.inputs import ALLOW_UNCAGED
from tests import shared_jvm
from tests.github_standin.wire import Exchange
from tests.oracle.runner import Command, RunnerLog, read_file_command

ROOT = Path(__file__).resolve().parents[2]
_METADATA = YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))
# `${{ inputs.plan-id }}`, the only kind of expression in runs.env.
_INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
_FILE_COMMANDS = ("output", "step_summary", "env", "path", "state")
# What the machine must give: a runner's image has Java and Python on its path.
_MACHINE = ("PATH", "JAVA_HOME", "PYSPARK_PYTHON", shared_jvm.PORT, shared_jvm.SECRET)
# A container action has this one beside the job's own token.
RUNTIME_TOKEN = "runtime-credential-of-this-job-0123456789"


@dataclass(frozen=True)
class Job:
    """What GitHub says about a run before it starts.

    Attributes:
        event: The event's name, as in `pull_request`.
        payload: What the event file holds; text is written as it is.
        sha: `GITHUB_SHA`.
        inputs: The step's `with`; all others have action.yml's defaults.
        variables: The step's `env`, and whatever differs from a runner's usual variables.
        python: More options for the interpreter.
        run_id: `GITHUB_RUN_ID`; 0 lets the scene give the next one.
        meanwhile: Called with the pid of the action while it runs, in a thread of its own.
    """

    event: str
    payload: Mapping[str, Any] | str
    sha: str = "0" * 40
    actor: str = "author"
    inputs: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Sequence[str] = ()
    run_id: int = 0
    meanwhile: Callable[[int], object] | None = None


def unfolded(stdout: str) -> list[str]:
    """The lines of a log that stand in no group, which is what people see of it first."""
    found: list[str] = []
    inside = False
    for line in stdout.splitlines():
        if line.startswith(("::group::", "::endgroup::")):
            inside = line.startswith("::group::")
        elif not inside:
            found.append(line)
    return found


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it left."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    outputs: dict[str, str]
    summary: str
    workspace: Path
    requests: list[Exchange] = field(default_factory=list)

    @cached_property
    def log(self) -> RunnerLog:
        """The output as the runner reads it."""
        return RunnerLog().read(self.stdout)

    def annotations(self, level: str) -> list[str]:
        """The messages of one level: notice, warning or error."""
        return [command.data for command in self.log.named(level)]

    @property
    def commands(self) -> list[Command]:
        """All workflow commands, without the warning that these runs have no container."""
        return [each for each in self.log.commands if ALLOW_UNCAGED not in each.data]

    @property
    def errors(self) -> list[str]:
        return self.annotations("error")

    @property
    def writes(self) -> list[Exchange]:
        """The requests that could change something on GitHub."""
        return [exchange for exchange in self.requests if exchange.is_write]

    @property
    def result(self) -> dict[str, Any]:
        """The output `result`."""
        found: dict[str, Any] = json.loads(self.outputs["result"])
        return found

    def document(self, name: str) -> dict[str, Any]:
        """NAME.json of the report's directory."""
        path = self.workspace / self.outputs["report-path"] / f"{name}.json"
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found

    def report_files(self) -> dict[str, bytes]:
        """What the workflow's next step uploads as the artifact."""
        directory = self.workspace / self.outputs["report-path"]
        return {path.name: path.read_bytes() for path in directory.iterdir()}

    @property
    def readable(self) -> str:
        """Everything that a person or a later step gets to see, without the mask commands."""
        shown = [line for line in self.stdout.splitlines() if not line.startswith("::add-mask::")]
        parts = [*shown, self.stderr, self.summary, *self.outputs.values()]
        if "report-path" in self.outputs:
            parts += [content.decode() for content in self.report_files().values()]
        return "\n".join(parts)


class Runner:
    """A machine that runs jobs of one repository.

    Args:
        api_url: Where GitHub answers.
        repository: `owner/name`.
        token: The job's token.
        home: A directory of the runner's own; everything that a run makes is below it.
    """

    def __init__(self, *, api_url: str, repository: str, token: str, home: Path) -> None:
        self._api_url = api_url
        self._repository = repository
        self._token = token
        self._home = home
        self._runs = 0

    def run(self, job: Job, workspace: Path, *, timeout: float = 300) -> Outcome:
        """Runs the action for `job` in `workspace` to its end."""
        self._runs += 1
        home = self._home / f"run-{self._runs}"
        for name in ("home", "tmp", "commands"):
            (home / name).mkdir(parents=True)
        for name in _FILE_COMMANDS:
            (home / "commands" / name).touch()
        event = home / "event.json"
        text = job.payload if isinstance(job.payload, str) else json.dumps(job.payload)
        event.write_text(text, encoding="utf-8")
        environment = self._environment(job, home, workspace, event)
        begun = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-X", "utf8", *job.python, "-m", "ci_bot", "run"],
            cwd=workspace,
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            if job.meanwhile is not None:
                threading.Thread(target=job.meanwhile, args=(process.pid,), daemon=True).start()
            try:
                stdout, stderr = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
            finally:
                shared_jvm.JVM.settle()
        outcome = Outcome(
            exit_code=process.returncode,
            stdout=stdout.decode(),
            stderr=stderr.decode(),
            seconds=time.monotonic() - begun,
            outputs=dict(read_file_command((home / "commands" / "output").read_text("utf-8"))),
            summary=(home / "commands" / "step_summary").read_text("utf-8"),
            workspace=workspace,
        )
        self._check(outcome, home)
        return outcome

    def _environment(self, job: Job, home: Path, workspace: Path, event: Path) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in _MACHINE if name in os.environ},
            **{f"GITHUB_{name.upper()}": str(home / "commands" / name) for name in _FILE_COMMANDS},
            "ACTIONS_RUNTIME_TOKEN": RUNTIME_TOKEN,
            ALLOW_UNCAGED: "true",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTOR": job.actor,
            "GITHUB_API_URL": self._api_url,
            "GITHUB_EVENT_NAME": job.event,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": self._repository,
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_RUN_ID": str(job.run_id),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": job.sha,
            "GITHUB_TRIGGERING_ACTOR": job.actor,
            "GITHUB_WORKSPACE": str(workspace),
            "HOME": str(home / "home"),
            "PYTHONPATH": str(ROOT),
            "RUNNER_TEMP": str(home / "tmp"),
            "TMPDIR": str(home / "tmp"),
            **self.inputs(job.inputs),
            **job.variables,
        }

    def inputs(self, given: Mapping[str, str]) -> dict[str, str]:
        """runs.env of action.yml, filled in with the given inputs and its defaults."""
        unknown = set(given) - set(_METADATA["inputs"])
        if unknown:
            raise AssertionError(f"action.yml has no input {sorted(unknown)}")
        values = {
            name: str(declared["default"]).replace("${{ github.token }}", self._token)
            for name, declared in _METADATA["inputs"].items()
        } | dict(given)
        return {
            name: _INPUT.sub(lambda found: values[found[1]], expression)
            for name, expression in _METADATA["runs"]["env"].items()
        }

    def _check(self, outcome: Outcome, home: Path) -> None:
        shown = outcome.readable
        assert self._token not in shown, "the token can be read"
        assert RUNTIME_TOKEN not in shown, "the runner's own token can be read"
        told = [
            data for level in ("notice", "warning", "error") for data in outcome.annotations(level)
        ]
        for text in (*told, outcome.summary, *unfolded(outcome.stdout)):
            assert "Traceback (most recent call last)" not in text
        assert "Traceback (most recent call last)" not in outcome.stderr
        assert list((home / "tmp").iterdir()) == [], "private directories are left"
        assert outcome.exit_code in (0, 1, 2, 3, 4, 130, 143), f"{outcome.stdout}\n{outcome.stderr}"
