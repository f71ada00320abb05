"""What a terminal shows beside a report: steps and their time, help, completion, pages of rules."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from ci_bot.bot.cli.commands import command_group
from ci_bot.bot.cli.explain import print_rule_page
from ci_bot.bot.cli.options import list_model_names_for_completion
from ci_bot.bot.cli.session import show_steps_on_laptop
from ci_bot.host import Machine, make_process_machine
from ci_bot.protocol.messages import Progress


class Terminal(io.StringIO):
    """A terminal, as far as a text knows of one."""

    def isatty(self) -> bool:
        return True


def machine_with(log: io.StringIO, *, seconds: float = 0.0, **environ: str) -> Machine:
    """Each look at its clock is so many seconds after the one before."""
    ticks = (number * seconds for number in count())
    return replace(make_process_machine(), log=log, monotonic=lambda: next(ticks), environ=environ)


def steps() -> Iterator[Progress]:
    yield Progress(phase="load", message="loading")
    yield Progress(phase="build", message="shop.a", done=1, total=3)
    yield Progress(phase="build", message="shop.b", done=2, total=3)
    yield Progress(phase="end", message="done")


def shown(machine: Machine) -> str:
    with show_steps_on_laptop(machine) as display:
        for step in steps():
            display.show_step(step)
            display.print_line("said [red]by[/red] the project")
    return machine.log.getvalue()  # type: ignore[attr-defined]  # a StringIO of ours


def test_steps__in_a_pipe_are_lines_and_long_ones_say_their_time() -> None:
    lines = shown(machine_with(io.StringIO(), seconds=2.5)).splitlines()
    assert [line for line in lines if not line.startswith("said")] == [
        "load: loading",
        "load: took 2.5 s",
        "build 1/3: shop.a",
        "build 2/3: shop.b",
        "build: took 2.5 s",
        "end: done",
        "end: took 2.5 s",
    ]
    assert "said [red]by[/red] the project" in lines


def test_steps__that_are_short_say_no_time() -> None:
    assert "took" not in shown(machine_with(io.StringIO(), seconds=1.9))


def test_steps__on_a_terminal_count_in_one_line_and_leave_the_log_as_it_is() -> None:
    text = shown(machine_with(Terminal(), TERM="xterm", COLUMNS="100"))
    assert "build: shop.b" in text
    assert "2 of 3" in text
    assert "0:00:0" in text
    assert "said [red]by[/red] the project" in text, "no markup of ours"


def test_steps__on_a_terminal_that_cannot_go_back_are_lines() -> None:
    assert "build 2/3: shop.b\n" in shown(machine_with(Terminal(), TERM="dumb"))


def test_command__alone_is_the_help() -> None:
    done = CliRunner().invoke(command_group, [])
    assert done.exit_code == 0
    assert "ci-bot review" in done.output
    assert "explain" in done.output


def test_explain__on_a_terminal_draws_the_page_without_links_into_nowhere() -> None:
    out = Terminal()
    machine = replace(make_process_machine(), out=out, environ={"COLUMNS": "80", "NO_COLOR": "1"})
    assert print_rule_page(machine, "R06-interval-limit") == 0
    text = out.getvalue()
    assert "The plan has more intervals than the limit" in text
    assert "**What it sees.**" not in text
    assert "../policy.md" not in text


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    models = tmp_path / "models"
    (models / "deep").mkdir(parents=True)
    (models / "a.sql").write_text("MODEL (\n  name shop.orders,\n  kind FULL\n);\nSELECT 1")
    (models / "deep" / "b.sql").write_text("-- x\nmodel(name `shop`.items);\nSELECT 1")
    (models / "c.py").write_text('@model(\n    "shop.users",\n    kind="FULL")\ndef f(): ...')
    (models / "d.sql").write_text("MODEL (name @schema.made, kind FULL);\nSELECT 1")
    (models / "e.sql").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(line: str) -> list[str]:
    shell = ShellComplete(command_group, {}, "ci-bot", "_CI_BOT_COMPLETE")
    *before, incomplete = line.split(" ")
    return [item.value for item in shell.get_completions(before, incomplete)]


def test_completion__knows_models_rules_and_words(project: Path) -> None:
    assert list_model_names_for_completion([str(project)]) == [
        "shop.items",
        "shop.orders",
        "shop.users",
    ]
    assert completed("policy explain shop.o") == ["shop.orders"]
    assert completed("review --restate-model shop.") == ["shop.items", "shop.orders", "shop.users"]
    assert completed("explain R06-int") == ["R06-interval-limit"]
    assert completed("review --fail-on b") == ["blocker"]


def test_completion__of_another_directory_reads_that_one(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    assert completed("policy explain --project .. shop.o") == ["shop.orders"]
    assert completed("policy explain shop.o") == []
