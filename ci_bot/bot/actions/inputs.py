"""The settings of a run: inputs and options as typed values, the runner's variables. Pure and fast.

A parser takes the text of an input, or of the option with the same name, and returns the value. Or
it raises ValueError with the right form, to follow the name: "must be a whole number".

Inputs have the names of the CLI's options. action.yml passes each as `CI_BOT_<NAME>`, so that a
test can compare action.yml, this module and docs/reference.md. One message names all problems,
before anything is done.
"""
# ruff: noqa: RUF009 - `_declare_input` gives a dataclass field, which the rule cannot see

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, cast, get_args
from urllib.parse import quote, urlsplit

from ci_bot import __version__
from ci_bot.errors import BadInput
from ci_bot.protocol.environment import DEFAULT_PREFIX, is_environment_prefix
from ci_bot.protocol.files import MOST_INTERVALS

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha
    from ci_bot.protocol.cost import Price


_EMPTY = "must not be empty"

Parse = Callable[[str], Any]
# The least severe finding that fails the check of a review.
FailOn = Literal["blocker", "high", "never"]
# Whether a terminal gets colours.
Color = Literal["auto", "always", "never"]

LONGEST_TEXT = 1_000
# The longest time, in minutes, that GitHub lets a job run on a self-hosted runner.
MOST_MINUTES = 35 * 24 * 60
_DIGITS = 18
_NUMBER = re.compile(r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")


def describe_wrong_input_value(label: str, value: str, error: ValueError) -> str:
    """Returns the one sentence about a wrong value, without a full stop.

    Args:
        label: What the value was given for, such as "option `--plan-id`".
    """
    # Imported here, because every event imports this module, and few need this sentence.
    from ci_bot.redaction import quote_value

    return f"{label} {error} (got {quote_value(value)})"


def parse_utf8_input(value: str) -> str:
    """Accepts any text that the system could decode."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be UTF-8") from None
    return value


def parse_text_input(value: str) -> str:
    """Parses one line that is not empty."""
    stripped = parse_utf8_input(value).strip()
    if not stripped:
        raise ValueError(_EMPTY)
    if not stripped.isprintable():
        raise ValueError("must be one line of printable characters")
    if len(stripped) > LONGEST_TEXT:
        raise ValueError(f"must be at most {LONGEST_TEXT:,} characters long")
    return stripped


def parse_path_input(value: str) -> str:
    """Accepts a path without checking that it exists; blanks at its ends are part of it."""
    if not parse_utf8_input(value).strip():
        raise ValueError(_EMPTY)
    return value


def parse_lines_input(value: str) -> tuple[str, ...]:
    """Parses one entry for each line."""
    return tuple(
        parse_text_input(line) for line in parse_utf8_input(value).splitlines() if line.strip()
    )


def parse_names_input(value: str) -> tuple[str, ...]:
    """Parses entries separated by white space or commas."""
    return tuple(
        parse_text_input(part) for part in re.split(r"[\s,]+", parse_utf8_input(value)) if part
    )


def parse_flag_input(value: str) -> bool:
    if value.strip() not in ("true", "false"):
        raise ValueError("must be `true` or `false`")
    return value.strip() == "true"


def make_whole_number_input_parser(
    minimum: int, maximum: int | None = None
) -> Callable[[str], int]:
    """Makes a parser for a whole number within limits."""

    def parse_whole_number(value: str) -> int:
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise ValueError(f"must be a whole number from {minimum} up")
        if int(digits) < minimum:
            raise ValueError(f"must be at least {minimum}")
        if maximum is not None and int(digits) > maximum:
            raise ValueError(f"must be at most {maximum:,}")
        return int(digits)

    return parse_whole_number


def make_number_input_parser(maximum: float | None = None) -> Callable[[str], float]:
    """Makes a parser for a number of 0 or more, up to `maximum`."""
    range_ = "from 0 up" if maximum is None else f"from 0 to {maximum:g}"

    def parse_number(value: str) -> float:
        if not _NUMBER.fullmatch(value.strip()):
            raise ValueError(f"must be a number {range_}")
        found = float(value)
        if maximum is not None and found > maximum:
            raise ValueError(f"must be a number {range_}")
        return found

    return parse_number


def parse_price_input(value: str) -> Price:
    """Parses an amount with its currency: `0.42 EUR`."""
    # Imported here, because the contracts import pydantic, which an event without work does not
    # need.
    from ci_bot.protocol.cost import Price

    return Price.parse_price(value)


def make_word_input_parser(*words: str) -> Callable[[str], str]:
    """Makes a parser for one of these words."""

    def parse_word(value: str) -> str:
        if value.strip() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.strip()

    return parse_word


def make_pattern_input_parser(pattern: str, what: str) -> Callable[[str], str]:
    """Makes a parser for a text of one form; `what` describes the form."""

    def parse_matching(value: str) -> str:
        if not re.fullmatch(pattern, value.strip()):
            raise ValueError(what)
        return value.strip()

    return parse_matching


parse_plan_id = make_pattern_input_parser(
    r"[0-9a-fA-F]{8,64}", "must be 8 to 64 hexadecimal digits of a plan id"
)
# What a review has instead of prod's plan id, if a merge changes nothing.
NO_CHANGES = "none"
parse_prod_plan_id = make_pattern_input_parser(
    rf"[0-9a-fA-F]{{8,64}}|{NO_CHANGES}",
    f"must be 8 to 64 hexadecimal digits of prod's plan id, or `{NO_CHANGES}`",
)


def parse_environment_prefix(value: str) -> str:
    """Parses the name of the environments of pull requests before `_<number>`."""
    if not is_environment_prefix(value.strip()):
        raise ValueError("must be lower case letters, digits and `_`, a letter first")
    return value.strip()


parse_interval_limit = make_whole_number_input_parser(0, MOST_INTERVALS)
parse_minutes = make_whole_number_input_parser(1, MOST_MINUTES)


# A release of an action, as it is written after `uses:`.
parse_release_name = make_pattern_input_parser(
    r"[\w.-]+/[\w.-]+@[0-9a-f]{40}(\s*#\s*v[\w.+-]+)?",
    "must be OWNER/NAME@COMMIT, with the 40 digits of the commit",
)


Mode = Literal[
    "auto",
    "review",
    "apply",
    "probe",
    "estimate",
    "accept",
    "restate",
    "cleanup",
    "sweep",
    "drift",
    "doctor",
]
MODES: tuple[Mode, ...] = get_args(Mode)
BaselineInput = Literal["auto", "state", "base-branch"]
CommentInput = Literal["always", "changes", "new"]
CacheInput = Literal["none", "base"]
ReclaimInput = Literal["auto", "never", "always"]

PREFIX = "CI_BOT_"
# Lets a workflow run the project's code without the container. It is no input, so no `with:` can
# set it.
ALLOW_UNCAGED = "CI_BOT_ALLOW_UNCAGED"
_DEFAULT_TIMEOUT_MINUTES = 60
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def make_variable_name_of_input(input_name: str) -> str:
    """Returns the variable that carries an input: CI_BOT_PLAN_ID for `plan-id`."""
    return PREFIX + input_name.upper().replace("-", "_")


def _declare_input(default: Any, parse: Parse) -> Any:
    return field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, kw_only=True)
class ActionInputs:
    """The inputs of the action; the fields are their names with underscores."""

    github_token: str = field(default="", repr=False, metadata={"parse": str.strip})
    project: tuple[str, ...] = _declare_input((".",), parse_lines_input)
    gateway: str | None = _declare_input(None, parse_text_input)
    mode: Mode = _declare_input("auto", make_word_input_parser(*MODES))
    environment_prefix: str | None = _declare_input(None, parse_environment_prefix)
    baseline: BaselineInput = _declare_input(
        "auto", make_word_input_parser(*get_args(BaselineInput))
    )
    requirements: str | None = _declare_input(None, parse_text_input)
    python_path: tuple[str, ...] = _declare_input((), parse_lines_input)
    worker_env: str = _declare_input("", parse_utf8_input)
    select_model: tuple[str, ...] = _declare_input((), parse_names_input)
    restate_model: tuple[str, ...] = _declare_input((), parse_names_input)
    start: str | None = _declare_input(None, parse_text_input)
    end: str | None = _declare_input(None, parse_text_input)
    min_intervals: int | None = _declare_input(None, parse_interval_limit)
    preview_start: str | None = _declare_input(None, parse_text_input)
    preview_min_intervals: int | None = _declare_input(None, parse_interval_limit)
    skip_backfill: bool | None = _declare_input(None, parse_flag_input)
    include_unmodified: bool | None = _declare_input(None, parse_flag_input)
    forward_only: bool | None = _declare_input(None, parse_flag_input)
    allow_destructive: tuple[str, ...] = _declare_input((), parse_names_input)
    override_reason: str | None = _declare_input(None, parse_text_input)
    plan_id: str | None = _declare_input(None, parse_plan_id)
    pr_number: int | None = _declare_input(None, make_whole_number_input_parser(1))
    comment_id: int | None = _declare_input(None, make_whole_number_input_parser(1))
    fail_on: FailOn | None = _declare_input(None, make_word_input_parser(*get_args(FailOn)))
    max_intervals: int | None = _declare_input(None, make_whole_number_input_parser(0))
    max_executor_hours: float | None = _declare_input(None, make_number_input_parser())
    diff_tolerance: float | None = _declare_input(None, make_number_input_parser(1.0))
    comment: CommentInput = _declare_input(
        "always", make_word_input_parser(*get_args(CommentInput))
    )
    table_diff: bool = _declare_input(True, parse_flag_input)
    reclaim: ReclaimInput = _declare_input("auto", make_word_input_parser(*get_args(ReclaimInput)))
    max_deletions: int = _declare_input(20, make_whole_number_input_parser(1))
    event_logs: str | None = _declare_input(None, parse_text_input)
    cache: CacheInput = _declare_input("none", make_word_input_parser(*get_args(CacheInput)))
    cache_dir: str = _declare_input(".ci-bot-cache", parse_text_input)
    executor_hour_price: Price | None = _declare_input(None, parse_price_input)
    timeout_minutes: int = _declare_input(_DEFAULT_TIMEOUT_MINUTES, parse_minutes)

    @classmethod
    def find_parser(cls, name: str) -> Parse:
        """Returns the parser of an input (named as in action.yml) or of the option of that name."""
        (parse,) = (
            item.metadata["parse"] for item in fields(cls) if item.name == name.replace("-", "_")
        )
        return cast(Parse, parse)

    @classmethod
    def list_names(cls) -> list[str]:
        """Returns the inputs' names as in action.yml."""
        return [item.name.replace("_", "-") for item in fields(cls)]


@dataclass(frozen=True, kw_only=True)
class ActionRunnerFacts:
    """The facts about this run from GitHub's runner."""

    repository: str
    api_url: str
    server_url: str
    workspace: str
    event_name: str
    event_path: str
    sha: Sha | None = None
    run_id: int = 0
    run_attempt: int = 1
    actor: str | None = None
    output: str | None = None
    step_summary: str | None = None
    action_repository: str | None = None
    action_ref: str | None = None

    @property
    def rules_url(self) -> str | None:
        """The address of the rules' pages, at the commit or tag of the running action.

        None if the action is a directory of the checkout: then its repository is not known.
        """
        if not self.action_repository:
            return None
        ref = quote(self.action_ref or f"v{__version__}", safe="/")
        return f"{self.server_url}/{self.action_repository}/blob/{ref}/docs/rules"

    @property
    def run_url(self) -> str | None:
        """The address of this run's page; None if the run has no id."""
        if not self.run_id:
            return None
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"


@dataclass(frozen=True, kw_only=True)
class ActionSettings:
    """All that a run was given.

    `prefix` is the name of its environments before `_<number>`: the input's, else the default,
    until the base branch's configuration is known.
    """

    inputs: ActionInputs
    runner: ActionRunnerFacts
    prefix: str = DEFAULT_PREFIX


def read_action_settings(environ: Mapping[str, str]) -> ActionSettings:
    """Reads and checks all settings at once.

    Raises:
        BadInput: one message with all problems.
    """
    problems: list[str] = []
    inputs = _read_action_inputs(environ, problems)
    runner = _read_runner_facts(environ, problems)
    if problems:
        raise BadInput(
            "This run cannot start: " + "; ".join(problems) + ".",
            hint="Correct the inputs in the workflow. Nothing was touched.",
            reason_code="bad_input",
        )
    prefix = inputs.environment_prefix or DEFAULT_PREFIX
    return ActionSettings(inputs=inputs, runner=runner, prefix=prefix)


def _read_action_inputs(environ: Mapping[str, str], problems: list[str]) -> ActionInputs:
    found: dict[str, Any] = {}  # by the fields of `ActionInputs`, each as its parser returns it
    for item in fields(ActionInputs):
        name = item.name.replace("_", "-")
        given = environ.get(make_variable_name_of_input(name), "")
        if not given.strip():
            continue  # the runner sets every input; one that was not given is empty
        try:
            found[item.name] = item.metadata["parse"](given)
        except ValueError as error:
            problems.append(describe_wrong_input_value(f"input `{name}`", given, error))
    known = {make_variable_name_of_input(name) for name in ActionInputs.list_names()}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and name not in _OURS:
            problems.append(f"`{name}` is not an input of this action")
    return ActionInputs(**found)


# These are no inputs of the action: the image sets them, or a machine without it.
_OURS = frozenset({"CI_BOT_CONTAINER", "CI_BOT_WORKER_PYTHON", ALLOW_UNCAGED})


def _read_runner_facts(environ: Mapping[str, str], problems: list[str]) -> ActionRunnerFacts:
    def read_required(name: str) -> str:
        value = environ.get(name, "").strip()
        if not value:
            missing.append(name)
        return value

    missing: list[str] = []
    api_url = environ.get("GITHUB_API_URL", "").strip() or "https://api.github.com"
    _check_runner_url("GITHUB_API_URL", api_url, problems)
    server_url = environ.get("GITHUB_SERVER_URL", "").strip() or "https://github.com"
    runner = ActionRunnerFacts(
        repository=read_required("GITHUB_REPOSITORY"),
        api_url=api_url,
        server_url=server_url,
        workspace=read_required("GITHUB_WORKSPACE"),
        event_name=read_required("GITHUB_EVENT_NAME"),
        event_path=read_required("GITHUB_EVENT_PATH"),
        sha=environ.get("GITHUB_SHA") or None,
        run_id=_parse_digits(environ, "GITHUB_RUN_ID", 0),
        run_attempt=_parse_digits(environ, "GITHUB_RUN_ATTEMPT", 1),
        actor=environ.get("GITHUB_TRIGGERING_ACTOR") or environ.get("GITHUB_ACTOR") or None,
        output=environ.get("GITHUB_OUTPUT") or None,
        step_summary=environ.get("GITHUB_STEP_SUMMARY") or None,
        action_repository=environ.get("GITHUB_ACTION_REPOSITORY") or None,
        action_ref=environ.get("GITHUB_ACTION_REF") or None,
    )
    if missing:
        problems.append(
            f"{', '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set, and `ci-bot run` "
            "is for GitHub workflows only; anywhere else use `ci-bot review` and the others"
        )
    return runner


def _check_runner_url(name: str, url: str, problems: list[str]) -> None:
    """Checks that a URL is https, or http on loopback, where tests and the runner's proxies are."""
    try:
        parts = urlsplit(url)
    except ValueError:  # for example, a bracket that is not closed
        fine = False
    else:
        plain = parts.scheme == "http" and parts.hostname in _LOOPBACK
        fine = bool(parts.hostname) and (parts.scheme == "https" or plain)
    if not fine:
        from ci_bot.redaction import quote_value

        problems.append(f"{name} is {quote_value(url)}, which is no https address")


def _parse_digits(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default  # noqa: PLR2004 - 64 bits
