"""`ci-bot run` inside the test's own process, with a clock that nobody waits for.

The end-to-end tests start the real process; here the bot's waits between two writes cost nothing,
so that many small runs are cheap. GitHub, files and the worker are as real as there.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ci_bot.bot.actions.inputs import ALLOW_UNCAGED
from ci_bot.bot.handlers.run_action import run_action_in_workflow
from ci_bot.host import Machine
from tests.oracle.runner import RunnerLog, read_file_command
from tests.shared_jvm import JVM

NOON = datetime(2026, 8, 22, 12, 0, 0, tzinfo=timezone.utc)


@dataclass
class Clock:
    """Time that passes only where somebody sleeps."""

    passed: float = 0.0

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.passed)


@dataclass(frozen=True)
class Ran:
    """How a run ended, as the runner reads it."""

    exit_code: int
    stdout: str
    outputs: dict[str, str]
    summary: str

    def told(self, level: str) -> list[str]:
        """The annotations of a level, without the one that these runs have no container."""
        named = RunnerLog().read(self.stdout).named(level)
        return [command.data for command in named if ALLOW_UNCAGED not in command.data]

    @property
    def result(self) -> dict[str, Any]:
        return dict(json.loads(self.outputs["result"]))


@dataclass
class RunnerMachine:
    """Runs jobs of one repository; every file of a run lies below `home`."""

    api_url: str
    repository: str
    token: str
    home: Path
    clock: Clock = field(default_factory=Clock)
    runs: int = 100

    def surroundings(self, variables: Mapping[str, str]) -> tuple[Machine, io.StringIO]:
        """A machine with these variables beside its own."""
        out = io.StringIO()
        tokens = iter(range(1, 10_000))
        temporary = self.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        around = Machine(
            environ={
                **{
                    name: value
                    for name, value in os.environ.items()
                    if not name.startswith(("CI_BOT_", "GITHUB_", "GH_"))
                },
                **variables,
            },
            directory=self.home,
            out=out,
            log=io.StringIO(),
            python=sys.executable,
            worker_user=None,
            temporary=temporary,
            monotonic=lambda: self.clock.passed,
            utc_now=self.clock.now,
            sleep=self.clock.sleep,
            token=lambda: f"{next(tokens):064x}",
            jitter=lambda: 0.0,
        )
        return around, out

    def run(
        self,
        event: str,
        payload: Mapping[str, Any],
        *,
        workspace: Path | None = None,
        **inputs: str,
    ) -> Ran:
        """`ci-bot run` for an event. Without a workspace there is no checkout at all."""
        self.runs += 1
        home = self.home / f"run-{self.runs}"
        home.mkdir(parents=True)
        (home / "event.json").write_text(json.dumps(payload), encoding="utf-8")
        around, out = self.surroundings(
            {
                ALLOW_UNCAGED: "true",
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": self.api_url,
                "GITHUB_EVENT_NAME": event,
                "GITHUB_EVENT_PATH": str(home / "event.json"),
                "GITHUB_OUTPUT": str(home / "output"),
                "GITHUB_REPOSITORY": self.repository,
                "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_RUN_ID": str(self.runs),
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_STEP_SUMMARY": str(home / "summary"),
                "GITHUB_WORKSPACE": str(workspace or self.home / "no-checkout"),
                "CI_BOT_GITHUB_TOKEN": self.token,
                **{f"CI_BOT_{name.upper()}": value for name, value in inputs.items()},
            }
        )
        exit_code = run_action_in_workflow(around)
        JVM.settle()
        ran = Ran(
            exit_code=exit_code,
            stdout=out.getvalue(),
            outputs=dict(read_file_command(_text(home / "output"))),
            summary=_text(home / "summary"),
        )
        shown = "\n".join(
            line for line in ran.stdout.splitlines() if not line.startswith("::add-mask::")
        )
        assert self.token not in f"{shown}{ran.summary}{ran.outputs}"
        assert list((self.home / "tmp").iterdir()) == [], "private directories are left"
        return ran


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""
