"""The action's inputs and the runner's variables as one frozen record. Pure, and fast to import.

Inputs keep the CLI's names; action.yml hands each to `CI_BOT_<NAME>`, so that a test can hold
action.yml, this module and the README together. All problems come in one message, before anything
is done.
"""
# ruff: noqa: RUF009 - `_input` gives a dataclass field, which the rule cannot see

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from urllib.parse import urlsplit

from ci_bot.activity import MODES, Mode
from ci_bot.contracts.environment import is_prefix
from ci_bot.errors import BadInput

Baseline = Literal["auto", "state", "base-branch"]
FailOn = Literal["blocker", "high", "never"]
Reclaim = Literal["auto", "never", "always"]

PREFIX = "CI_BOT_"
_DEFAULT_TIMEOUT_MINUTES = 60
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def env_name(input_name: str) -> str:
    """The variable that carries an input: `plan-id` is CI_BOT_PLAN_ID."""
    return PREFIX + input_name.upper().replace("-", "_")


def _text(value: str) -> str:
    return value.strip()


def _lines(value: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in value.splitlines() if line.strip())


def _names(value: str) -> tuple[str, ...]:
    return tuple(part for part in re.split(r"[\s,]+", value) if part)


def _flag(value: str) -> bool:
    if value.strip() not in ("true", "false"):
        raise ValueError("must be `true` or `false`")
    return value.strip() == "true"


def _whole(minimum: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        text = value.strip()
        if not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004 - 64 bits
            raise ValueError("must be a whole number")
        if int(text) < minimum:
            raise ValueError(f"must be at least {minimum}")
        return int(text)

    return parse


def _number(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise ValueError("must be a number") from None
    if not 0 <= number < float("inf"):
        raise ValueError("must be a number from 0 up")
    return number


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value.strip() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.strip()

    return parse


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if not re.fullmatch(pattern, value.strip()):
            raise ValueError(what)
        return value.strip()

    return parse


def _prefix(value: str) -> str:
    if not is_prefix(value.strip()):
        raise ValueError("must be lower case letters, digits and `_`, a letter first")
    return value.strip()


def _input(default: Any, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs of the action (DESIGN 4.5); the fields are their names with underscores."""

    github_token: str = field(default="", repr=False, metadata={"parse": _text})
    project: tuple[str, ...] = _input((".",), _lines)
    gateway: str | None = _input(None, _text)
    mode: Mode = _input("auto", _one_of(*MODES))
    environment_prefix: str = _input("pr", _prefix)
    baseline: Baseline = _input("auto", _one_of("auto", "state", "base-branch"))
    requirements: str | None = _input(None, _text)
    worker_env: str = _input("", str)
    select_model: tuple[str, ...] = _input((), _names)
    restate_model: tuple[str, ...] = _input((), _names)
    start: str | None = _input(None, _text)
    end: str | None = _input(None, _text)
    min_intervals: int = _input(0, _whole(0))
    preview_start: str | None = _input(None, _text)
    forward_only: bool = _input(False, _flag)
    allow_destructive: tuple[str, ...] = _input((), _names)
    override_reason: str | None = _input(None, _text)
    plan_id: str | None = _input(
        None, _matching(r"[0-9a-fA-F]{8,64}", "must be 8 to 64 hexadecimal digits of a plan id")
    )
    pr_number: int | None = _input(None, _whole(1))
    comment_id: int | None = _input(None, _whole(1))
    fail_on: FailOn = _input("blocker", _one_of("blocker", "high", "never"))
    max_intervals: int | None = _input(None, _whole(0))
    max_executor_hours: float | None = _input(None, _number)
    diff_tolerance: float = _input(0.0, _number)
    table_diff: bool = _input(True, _flag)
    reclaim: Reclaim = _input("auto", _one_of("auto", "never", "always"))
    max_deletions: int = _input(20, _whole(1))
    executor_hour_price: float | None = _input(None, _number)
    timeout_minutes: int = _input(_DEFAULT_TIMEOUT_MINUTES, _whole(1))

    @classmethod
    def names(cls) -> list[str]:
        """The inputs' names as action.yml spells them."""
        return [item.name.replace("_", "-") for item in fields(cls)]


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What GitHub's runner says about this run."""

    repository: str
    api_url: str
    server_url: str
    workspace: str
    event_name: str
    event_path: str
    sha: str | None = None
    run_id: int = 0
    run_attempt: int = 1
    actor: str | None = None
    output: str | None = None
    step_summary: str | None = None

    @property
    def run_url(self) -> str | None:
        """The page of this run."""
        if not self.run_id:
            return None
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    inputs: Inputs
    runner: Runner


def from_environ(environ: Mapping[str, str]) -> Settings:
    """Reads and checks everything at once.

    Raises:
        BadInput: every problem in one message.
    """
    problems: list[str] = []
    inputs = _read_inputs(environ, problems)
    runner = _read_runner(environ, problems)
    if problems:
        raise BadInput(
            "This run cannot start: " + "; ".join(problems) + ".",
            hint="Correct the inputs in the workflow. Nothing was touched.",
            reason_code="bad_input",
        )
    return Settings(inputs=inputs, runner=runner)


def _read_inputs(environ: Mapping[str, str], problems: list[str]) -> Inputs:
    values: dict[str, Any] = {}
    for item in fields(Inputs):
        name = item.name.replace("_", "-")
        given = environ.get(env_name(name), "")
        if not given.strip():
            continue  # the runner sets every input, empty where it was not given
        try:
            values[item.name] = item.metadata["parse"](given)
        except ValueError as error:
            shown = "" if name == "github-token" else f" (got {given.strip()[:60]!r})"
            problems.append(f"input `{name}` {error}{shown}")
    known = {env_name(name) for name in Inputs.names()}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and name not in _OURS:
            problems.append(f"`{name}` is not an input of this action")
    return Inputs(**values)


# Set by the image, not by a user.
_OURS = frozenset({"CI_BOT_CONTAINER", "CI_BOT_WORKER_PYTHON"})


def _read_runner(environ: Mapping[str, str], problems: list[str]) -> Runner:
    def need(name: str) -> str:
        value = environ.get(name, "").strip()
        if not value:
            problems.append(f"{name} is not set; `ci-bot run` belongs into a GitHub workflow")
        return value

    api_url = environ.get("GITHUB_API_URL", "").strip() or "https://api.github.com"
    _check_url("GITHUB_API_URL", api_url, problems)
    server_url = environ.get("GITHUB_SERVER_URL", "").strip() or "https://github.com"
    return Runner(
        repository=need("GITHUB_REPOSITORY"),
        api_url=api_url,
        server_url=server_url,
        workspace=need("GITHUB_WORKSPACE"),
        event_name=need("GITHUB_EVENT_NAME"),
        event_path=need("GITHUB_EVENT_PATH"),
        sha=environ.get("GITHUB_SHA") or None,
        run_id=_digits(environ, "GITHUB_RUN_ID", 0),
        run_attempt=_digits(environ, "GITHUB_RUN_ATTEMPT", 1),
        actor=environ.get("GITHUB_TRIGGERING_ACTOR") or environ.get("GITHUB_ACTOR") or None,
        output=environ.get("GITHUB_OUTPUT") or None,
        step_summary=environ.get("GITHUB_STEP_SUMMARY") or None,
    )


def _check_url(name: str, url: str, problems: list[str]) -> None:
    """https, or plain HTTP on loopback, where tests and proxies of the runner live."""
    parts = urlsplit(url)
    plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
    if not parts.hostname or (parts.scheme != "https" and not plain):
        problems.append(f"{name} is {url!r}, which is no https address")


def _digits(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default  # noqa: PLR2004
