"""What GitHub's runner does with a container action: inputs, mounts, variables, then `docker run`.

Inputs go through action.yml itself, so a test that passes here has tested its mapping, too. Facts
about the runner: ContainerActionHandler.cs and DockerCommandManager.cs in actions/runner.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from .engine import Engine

# `${{ inputs.plan-id }}`; the only kind of expression that action.yml uses in runs.env.
_INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
_FILE_COMMANDS = ("output", "step_summary", "env", "path", "state")
# The account that owns the checkout on GitHub's machines; root in the container does not.
RUNNER_UID = 1001
TOKEN = "ghs_" + "containertest" * 2


@dataclass(frozen=True)
class Outcome:
    """How a run ended and what it left for the runner."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str


@dataclass(frozen=True)
class Action:
    """The action in one job. `workspace` is the checkout; write the project there first."""

    engine: Engine
    image: str
    metadata: Mapping[str, Any]
    home: Path

    @classmethod
    def prepare(cls, engine: Engine, image: str, action_yml: Path, home: Path) -> Action:
        """The directories and files that a runner has ready before a step."""
        for name in ("workspace", "home", "workflow", "file_commands", "runner_temp"):
            (home / name).mkdir()
        for name in _FILE_COMMANDS:
            (home / "file_commands" / name).touch()
        metadata = YAML(typ="safe").load(action_yml.read_text("utf-8"))
        return cls(engine, image, metadata, home)

    @property
    def workspace(self) -> Path:
        """The checkout, on this machine; /github/workspace in the container."""
        return self.home / "workspace"

    def run(
        self,
        event: str,
        payload: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> Outcome:
        """Run the action for an event to its end.

        Args:
            event: Its name, as in `pull_request`.
            payload: What GitHub sends with it.
            inputs: The step's `with`; the others have action.yml's defaults.
            variables: The step's `env` and whatever differs from a runner's usual variables,
                for example GITHUB_API_URL.
            timeout: Seconds.
        """
        done = self.engine.run(
            self.image,
            *self.metadata["runs"]["args"],
            options=self._options(event, payload, inputs or {}, variables or {}),
            check=False,
            timeout=timeout,
        )
        return Outcome(
            exit_code=done.returncode,
            log=done.stdout + done.stderr,
            outputs=self._outputs(),
            summary=(self.home / "file_commands" / "step_summary").read_text("utf-8"),
        )

    @contextmanager
    def started(
        self,
        event: str,
        payload: Mapping[str, object],
        inputs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[Running]:
        """The same in the background, for tests that send it signals."""
        options = self._options(event, payload, inputs or {}, variables or {})
        arguments = self.metadata["runs"]["args"]
        with self.engine.started(self.image, *arguments, options=options) as identity:
            yield Running(self.engine, identity)

    def _options(
        self,
        event: str,
        payload: Mapping[str, object],
        inputs: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> list[str]:
        (self.home / "workflow" / "event.json").write_text(json.dumps(payload), "utf-8")
        mounts = {
            "workspace": "/github/workspace",
            "home": "/github/home",
            "workflow": "/github/workflow",
            "file_commands": "/github/file_commands",
            "runner_temp": "/github/runner_temp",
        }
        if os.geteuid() == 0:
            for path in (self.workspace, *self.workspace.rglob("*")):
                os.chown(path, RUNNER_UID, RUNNER_UID, follow_symlinks=False)
        options = ["--workdir", "/github/workspace"]
        for name, inside in mounts.items():
            options += ["--volume", f"{self.home / name}:{inside}"]
        everything = {**_usual_variables(event), **self.environment(inputs), **variables}
        for name, value in everything.items():
            options += ["--env", f"{name}={value}"]
        return options

    def environment(self, inputs: Mapping[str, str]) -> dict[str, str]:
        """runs.env of action.yml, with the given inputs and its defaults filled in."""
        unknown = set(inputs) - set(self.metadata["inputs"])
        assert not unknown, f"action.yml has no input {sorted(unknown)}"
        values = {
            name: str(declared.get("default", "")).replace("${{ github.token }}", TOKEN)
            for name, declared in self.metadata["inputs"].items()
        }
        values.update(inputs)
        return {
            name: _INPUT.sub(lambda found: values[found[1]], expression)
            for name, expression in self.metadata["runs"]["env"].items()
        }

    def _outputs(self) -> dict[str, str]:
        """GITHUB_OUTPUT, which the bot writes in its multi-line form only."""
        lines = (self.home / "file_commands" / "output").read_text("utf-8").split("\n")
        outputs, position = {}, 0
        while position < len(lines):
            name, mark, delimiter = lines[position].partition("<<")
            if not mark:
                assert not lines[position], f"not an output: {lines[position]!r}"
                position += 1
                continue
            end = lines.index(delimiter, position + 1)
            outputs[name] = "\n".join(lines[position + 1 : end])
            position = end + 1
        return outputs


@dataclass(frozen=True)
class Running:
    """A run in the background."""

    engine: Engine
    identity: str

    def signal(self, name: str) -> bool:
        """Send a signal to the container's process 1; False if it has ended already."""
        return (
            self.engine.call("kill", "--signal", name, self.identity, check=False).returncode == 0
        )

    def wait(self, timeout: float) -> int:
        """Its exit code; subprocess.TimeoutExpired if it goes on for longer."""
        return int(self.engine.call("wait", self.identity, timeout=timeout).stdout)

    def log(self) -> str:
        """What it has printed so far."""
        printed = self.engine.call("logs", self.identity)
        return printed.stdout + printed.stderr

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command next to it, in the same container."""
        return self.engine.call("exec", self.identity, *command, check=False)


def _usual_variables(event: str) -> dict[str, str]:
    commands = {
        f"GITHUB_{name.upper()}": f"/github/file_commands/{name}" for name in _FILE_COMMANDS
    }
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "octocat",
        "GITHUB_TRIGGERING_ACTOR": "octocat",
        "GITHUB_API_URL": "https://api.github.com",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_EVENT_PATH": "/github/workflow/event.json",
        "GITHUB_JOB": "job",
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_REPOSITORY": "acme/warehouse",
        "GITHUB_REPOSITORY_OWNER": "acme",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "1001",
        "GITHUB_RUN_NUMBER": "1",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": "1" * 40,
        "GITHUB_WORKFLOW": "SQLMesh review",
        "GITHUB_WORKSPACE": "/github/workspace",
        "HOME": "/github/home",
        "RUNNER_TEMP": "/github/runner_temp",
        **commands,
    }
