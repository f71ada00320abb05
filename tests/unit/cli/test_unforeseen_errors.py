"""What nobody foresaw: a sentence for everybody, the traceback for those who mend it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click
import pytest

from ci_bot.bot.cli import commands
from ci_bot.bot.cli.command_line import run_command_guarded
from ci_bot.bot.handlers.run_action import run_action_in_workflow
from ci_bot.errors import BadInput, make_unforeseen_error
from ci_bot.host import Machine
from tests.github_standin import events
from tests.in_process import RunnerMachine
from tests.oracle.runner import RunnerLog, read_file_command

TOKEN = "ghs_" + "k" * 36


def broken(_around: Machine) -> int:
    raise ZeroDivisionError("::error::not ours\nsecond line")


def told(capsys: pytest.CaptureFixture[str], *, verbose: bool) -> tuple[int, str, str]:
    with (
        click.Context(commands.command_group) as context,
        pytest.raises(SystemExit) as ended,
    ):
        if verbose:
            context.meta["ci_bot.verbose"] = True
        run_command_guarded(broken)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_terminal__says_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, verbose=False)
    assert (code, out) == (1, "")
    what, how = err.splitlines()
    assert what == (
        "ci-bot: Something happened that ci-bot does not know: ZeroDivisionError: ::error::not ours."
    )
    assert "please report it" in how


def test_terminal__shows_the_traceback_to_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, verbose=True)
    assert code == 1
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.splitlines()[-2].startswith("ci-bot: Something happened")


def test_terminal__whose_reader_has_gone__says_nothing(tmp_path: Path) -> None:
    script = (
        f"{sys.executable} -m ci_bot schema report | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(commands.__file__).parent.parent,
    )
    assert "Traceback" not in done.stderr


def test_workflow__folds_the_traceback_and_says_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(events.pull_request("opened")))
    machine = RunnerMachine(api_url="", repository="acme/warehouse", token=TOKEN, home=tmp_path)
    around, out = machine.surroundings(
        {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "acme/warehouse",
            "GITHUB_WORKSPACE": str(tmp_path),
            "CI_BOT_GITHUB_TOKEN": TOKEN,
            "CI_BOT_ALLOW_UNCAGED": "true",
        }
    )

    def no_clock() -> datetime:
        raise ZeroDivisionError(f"::error::{TOKEN}")

    assert run_action_in_workflow(replace(around, utc_now=no_clock)) == 1

    text = out.getvalue()
    lines = [line for line in text.splitlines() if not line.startswith("::add-mask::")]
    begin, end = lines.index("::group::Traceback"), lines.index("::endgroup::")
    folded = [n for n, line in enumerate(lines) if line == "Traceback (most recent call last):"]
    assert folded
    assert all(begin < number < end for number in folded)
    assert TOKEN not in "\n".join(lines)
    log = RunnerLog().read(text)
    assert [command.data for command in log.named("error")] == [
        "Something happened that ci-bot does not know: ZeroDivisionError: ::error::***. "
        + str(make_unforeseen_error(ZeroDivisionError()).hint)
    ], "what the exception says is no command"
    outputs = dict(read_file_command((tmp_path / "output").read_text()))
    assert outputs["reason-code"] == "defect"


def test_unexpected__of_an_exception_without_words__names_its_kind() -> None:
    assert make_unforeseen_error(KeyError()).message.endswith("does not know: KeyError.")
    assert make_unforeseen_error(ValueError("x" * 999)).message.count("x") == 200
    assert not isinstance(make_unforeseen_error(KeyError()), BadInput)
