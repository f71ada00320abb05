"""Every option and every input with wrong values: exit 2, one sentence with the value, one fix.

The tables below are held against the command line and the settings, so that a new option or input
has to say here what is wrong for it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.actions.inputs import (
    MOST_MINUTES,
    ActionInputs,
    make_variable_name_of_input,
    read_action_settings,
)
from ci_bot.bot.cli import commands
from ci_bot.errors import BadInput
from ci_bot.protocol.files import MOST_INTERVALS
from ci_bot.redaction.redactor import LONGEST_QUOTED

NO_UTF8 = "\udcff"
LONG = "x" * 1_001
# For a text of one line, whatever it means.
TEXT = {
    "": "must not be empty",
    "  ": "must not be empty",
    NO_UTF8: "must be UTF-8",
    LONG: "must be at most 1,000 characters",
    "two\nlines": "must be one line of printable characters",
    "a\x1b[31mred": "must be one line of printable characters",
    "a\u202eb": "must be one line of printable characters",
}
PATH = {"": "must not be empty", " ": "must not be empty", NO_UTF8: "must be UTF-8"}
WHOLE = {
    "": "must be a whole number",
    "x": "must be a whole number",
    "-1": "must be a whole number",
    "1.5": "must be a whole number",
    "٣": "must be a whole number",
    "9" * 19: "must be a whole number",
    "0x10": "must be a whole number",
    "1_000": "must be a whole number",
}
NUMBER = {
    "": "must be a number from 0",
    **dict.fromkeys(["x", "-0.1", "nan", "inf", "1e400", "1_0", "1,5"], "must be a number from 0"),
}
PRICE = dict.fromkeys(
    ["x", "0.42", "-1 EUR", "nan EUR", "1 eur", "1 EURO", "1,5 EUR", "EUR 1", "1e3 EUR", "٣ EUR"],
    "must be an amount from 0 up and a currency",
)
PLAN_ID = dict.fromkeys(
    ["zz", "1234567", "g" * 12, "a" * 65, "123 4567", NO_UTF8], "must be 8 to 64 hexadecimal digits"
)
PREFIX = dict.fromkeys(
    ["PR", "7pr", "pr-", "p" * 32, "pr 7", "ü", NO_UTF8], "must be lower case letters"
)
INTERVALS = {**WHOLE, str(MOST_INTERVALS + 1): "must be at most 1,000,000"}
MINUTES = {**WHOLE, "0": "must be at least 1", str(MOST_MINUTES + 1): "must be at most 50,400"}


def words(*right: str) -> dict[str, str]:
    wrong = ["", "x", right[0].upper(), f"{right[0]}s", NO_UTF8]
    return dict.fromkeys(wrong, f"must be one of {', '.join(right)}")


OPTIONS = {
    "--project": PATH,
    "--gateway": TEXT,
    "--event-logs": TEXT,
    "--cache-dir": PATH,
    "--python-path": PATH,
    "--environment": TEXT,
    "--environment-prefix": {"": "must be lower case letters", **PREFIX},
    "--baseline": words("auto", "state", "base-branch"),
    "--base-ref": TEXT,
    "--worker-env": {NO_UTF8: "must be UTF-8"},
    "--timeout-minutes": MINUTES,
    "--output": PATH,
    "--keep": PATH,
    "--level": words("review", "apply", "full"),
    "--action": dict.fromkeys(
        ["", "acme/bot", "acme/bot@v1.2.3", f"acme/bot@{'a' * 39}", f"bot@{'a' * 40}", NO_UTF8],
        "must be OWNER/NAME@COMMIT",
    ),
    "--plan-id": {"": "must be 8 to 64 hexadecimal digits", **PLAN_ID},
    "--expect": {
        "": "must be 8 to 64 hexadecimal digits",
        "None": "must be 8 to 64 hexadecimal digits",
        **PLAN_ID,
    },
    "--reviewed": PATH,
    "--restatements": PATH,
    "--pull-request": {**WHOLE, "0": "must be at least 1"},
    "--restate-model": TEXT,
    "--select-model": TEXT,
    "--allow-destructive": TEXT,
    "--schema": PATH,
    "--start": TEXT,
    "--end": TEXT,
    "--min-intervals": INTERVALS,
    "--preview-start": TEXT,
    "--preview-min-intervals": INTERVALS,
    "--reclaim": words("auto", "never", "always"),
    "--max-deletions": {**WHOLE, "0": "must be at least 1"},
    "--color": words("auto", "always", "never"),
    "--fail-on": words("blocker", "high", "never"),
    "--max-intervals": WHOLE,
    "--max-executor-hours": NUMBER,
    "--executor-hour-price": PRICE,
}
# The same option has other values in one command.
OF_A_COMMAND = {
    ("doctor", "--format"): words("terminal", "json"),
    ("estimate", "--format"): words("terminal", "json"),
    ("prod-plan", "--format"): words("terminal", "json"),
    ("same", "--format"): words("terminal", "json"),
    ("review", "--format"): words("terminal", "markdown", "json"),
    ("apply", "--format"): words("terminal", "markdown", "json"),
    ("cleanup", "--format"): words("terminal", "markdown", "json"),
}
ARGUMENTS = {
    ("explain", "rule"): TEXT,
    ("witness", "model"): TEXT,
    ("same", "base"): PATH,
    ("same", "head"): PATH,
    **{
        (command, "path"): PATH
        for command in (
            *("review", "estimate", "apply", "prod-plan", "cleanup", "sweep", "doctor"),
            *("learn", "exposures", "init"),
        )
    },
    ("schema", "document"): words("report", "apply", "cleanup"),
}
# What stands before an argument.
BEFORE = {("same", "head"): ["base.sql"]}


@dataclass(frozen=True)
class Wrong:
    """A command line with one wrong value."""

    command: str
    option: str
    value: str
    says: str

    @property
    def arguments(self) -> list[str]:
        given_ = [self.value] if self.option[:1] != "-" else [f"{self.option}={self.value}"]
        return [self.command, *BEFORE.get((self.command, self.option), []), *given_]


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    """Every option and argument that takes a value."""
    for name, command in commands.command_group.commands.items():
        for param in command.params:
            if not (isinstance(param, click.Option) and (param.is_flag or param.name == "help")):
                yield name, param


def label(param: click.Parameter) -> str:
    return max(param.opts, key=len)


def wrong_lines() -> Iterator[Wrong]:
    for command, param in parameters():
        name = label(param)
        table = OF_A_COMMAND.get((command, name)) or OPTIONS.get(name, {})
        table = ARGUMENTS.get((command, name), table)
        for value, says in table.items():
            yield Wrong(command, name, value, says)


def ran(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    before = sys.argv
    sys.argv = ["ci-bot", *arguments]
    try:
        with pytest.raises(SystemExit) as ended:
            commands.main()
    finally:
        sys.argv = before
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def test_tables__have_wrong_values_for_every_option() -> None:
    """A new option fails here until its wrong values stand in a table above."""
    missing = {
        f"{command} {label(param)}"
        for command, param in parameters()
        if not any(
            line.command == command and line.option == label(param) for line in wrong_lines()
        )
    }
    assert missing == set()
    known = {label(param) for _, param in parameters()}
    assert {name for name in OPTIONS if name not in known} == set(), "options that are gone"


def test_options__are_all_of_the_kind_that_tells_its_wrong_values() -> None:
    for _, param in parameters():
        assert type(param).__module__ == "ci_bot.bot.cli.command_line", param
        assert type(param.type).__module__ == "ci_bot.bot.cli.command_line", param


@pytest.mark.parametrize(
    "wrong", list(wrong_lines()), ids=lambda w: f"{w.command}-{w.option}-{w.value[:9]!a}"
)
def test_option__with_a_wrong_value__is_two_lines(
    wrong: Wrong, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(wrong.arguments, capsys)
    assert (code, out) == (2, "")
    what, how = err.splitlines()
    kind = "argument" if wrong.option[:1] != "-" else "option"
    assert f"{kind} `{wrong.option}` {wrong.says}" in what
    assert f"(got {wrong.value.strip()[:LONGEST_QUOTED]!r}" in what
    assert how == (
        f"        `ci-bot {wrong.command} --help` shows what it takes. Nothing was touched."
    )


def test_options__that_are_wrong_together__are_told_together(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["apply", "--plan-id", "zz", "--start", "", "--min-intervals", "-1"]
    code, out, err = ran(arguments, capsys)
    assert (code, out) == (2, "")
    (what, _) = err.splitlines()
    for part in ("`--plan-id`", "`--start`", "`--min-intervals`", "`--environment` is missing"):
        assert part in what


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["revew"], "'revew'. Did you mean 'review'?"),
        (["review", "--bogus"], "'--bogus'"),
        (["review", "--project"], "'--project' requires an argument"),
        (["explain", "select-star", "extra"], "extra"),
        (["apply", "--forward-only=x"], "'--forward-only' does not take a value"),
        (["schema"], "argument `document` is missing"),
        (["--nothing"], "'--nothing'"),
        (["--color=red", "explain"], "option `--color` must be one of auto, always, never"),
    ],
)
def test_command_line__that_is_none__is_two_lines(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ran(arguments, capsys)
    assert (code, out) == (2, "")
    what, how = err.splitlines()
    assert says in what
    assert what.startswith("ci-bot: ")
    assert how.endswith("--help` shows what it takes. Nothing was touched.")


def test_help__is_not_disturbed(capsys: pytest.CaptureFixture[str]) -> None:
    for name, command in commands.command_group.commands.items():
        commands.command_group.main([name, "--help"], prog_name="ci-bot", standalone_mode=False)
        out, err = capsys.readouterr()
        assert err == ""
        for param in command.params:
            assert not isinstance(param, click.Option) or param.help, f"{name} {param.name}"
            for option in param.opts if isinstance(param, click.Option) else ():
                assert option in out


@pytest.mark.parametrize("arguments", [[b"\xff"], [b"review", b"--project=\xff\xfe"]])
def test_command_line__that_is_no_utf8__in_a_real_process(arguments: list[bytes]) -> None:
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"ci_bot", *arguments],
        capture_output=True,
        check=False,
        cwd=Path(commands.__file__).parents[2],
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 2


# --- the action's inputs --------------------------------------------------------------------------

ENTRY = {NO_UTF8: "must be UTF-8", LONG: "must be at most 1,000 characters"}
# An input that is empty was not given, so that is never wrong.
LINE = {value: says for value, says in TEXT.items() if value.strip()}
SWITCH = dict.fromkeys(["True", "yes", "1", NO_UTF8], "must be `true` or `false`")
INPUTS = {
    "project": {**ENTRY, "a\n\x1bb": "must be one line of printable characters"},
    "gateway": LINE,
    "mode": words(
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
    ),
    "environment-prefix": PREFIX,
    "baseline": words("auto", "state", "base-branch"),
    "requirements": LINE,
    "python-path": {**ENTRY, "a\n\x1bb": "must be one line of printable characters"},
    "worker-env": {NO_UTF8: "must be UTF-8"},
    "select-model": ENTRY,
    "restate-model": ENTRY,
    "start": LINE,
    "end": LINE,
    "min-intervals": INTERVALS,
    "preview-start": LINE,
    "preview-min-intervals": INTERVALS,
    "skip-backfill": SWITCH,
    "include-unmodified": SWITCH,
    "forward-only": SWITCH,
    "allow-destructive": ENTRY,
    "override-reason": LINE,
    "plan-id": PLAN_ID,
    "pr-number": {**WHOLE, "0": "must be at least 1"},
    "comment-id": {**WHOLE, "0": "must be at least 1"},
    "fail-on": words("blocker", "high", "never"),
    "max-intervals": WHOLE,
    "max-executor-hours": NUMBER,
    "diff-tolerance": {**NUMBER, "1.01": "must be a number from 0 to 1", "5": "must be a number"},
    "comment": words("always", "changes"),
    "table-diff": SWITCH,
    "reclaim": words("auto", "never", "always"),
    "max-deletions": {**WHOLE, "0": "must be at least 1"},
    "event-logs": LINE,
    "cache": words("none", "base"),
    "cache-dir": LINE,
    "executor-hour-price": PRICE,
    "timeout-minutes": MINUTES,
}
# Never repeated, and GitHub alone can say whether it is right; see the client's tests.
SECRET = {"github-token"}
RUNNER = {
    "GITHUB_REPOSITORY": "acme/warehouse",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
}


def test_tables__have_wrong_values_for_every_input() -> None:
    """A new input fails here until its wrong values stand in the table above."""
    assert set(INPUTS) | SECRET == set(ActionInputs.list_names())


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, table in INPUTS.items() for value in table if value]
)
def test_input__with_a_wrong_value__is_one_sentence(name: str, value: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_action_settings({**RUNNER, make_variable_name_of_input(name): value})
    assert refused.value.exit_code == 2
    found = re.fullmatch(r"This run cannot start: (input .*)\.", refused.value.message)
    assert found is not None
    assert found[1].startswith(f"input `{name}` {INPUTS[name][value]}")
    shown = value if name in ("project", "select-model") else value.strip()
    assert f"(got {shown.strip()[:LONGEST_QUOTED]!r}" in found[1]
    assert refused.value.hint


@given(st.sampled_from(sorted(INPUTS)), st.text(max_size=2_000))
def test_input__of_any_text__is_read_or_refused_with_its_name(name: str, value: str) -> None:
    try:
        read_action_settings({**RUNNER, make_variable_name_of_input(name): value})
    except BadInput as refused:
        assert refused.message.startswith(f"This run cannot start: input `{name}` must ")
        assert len(refused.message) < 500
        refused.message.encode("utf-8")


@pytest.mark.parametrize("url", ["http://[", "https://", "ftp://x", "x", "https:///x"])
def test_api_url__that_is_none__is_told_with_it(url: str) -> None:
    with pytest.raises(BadInput, match="GITHUB_API_URL is") as refused:
        read_action_settings({**RUNNER, "GITHUB_API_URL": url})
    assert repr(url) in refused.value.message


def test_run__by_hand__says_what_to_use_instead() -> None:
    with pytest.raises(BadInput) as refused:
        read_action_settings({})
    assert refused.value.message.count("ci-bot run") == 1
    assert "use `ci-bot review`" in refused.value.message
