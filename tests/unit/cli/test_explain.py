"""`ci-bot explain`: the page of a rule, and the way to it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from ci_bot.bot.cli.commands import command_group, main
from ci_bot.protocol.rules import RULES, TOPICS, read_rule_page


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(command_group, ["explain", *arguments], standalone_mode=False)


@pytest.mark.parametrize("id_", ["limit-in-model", "R06-breaking-rebuild"])
def test_explain__prints_the_page(id_: str) -> None:
    spec = RULES[id_]
    first, _, rest = explain(id_).stdout.partition("\n\n")
    assert first.startswith(f"{id_}: {spec.severity} by default; {spec.also[0]}; looks at ")
    assert rest.strip() == read_rule_page(id_).strip()
    assert rest.startswith(f"# {spec.title}\n")


def test_explain__without_a_rule_lists_all() -> None:
    told = explain().stdout
    for spec in RULES.values():
        assert f"  {spec.severity:8} {spec.id} " in told
    assert [told.index(f"\n\n{title}\n") for title in TOPICS.values()] == sorted(
        told.index(f"\n\n{title}\n") for title in TOPICS.values()
    )


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("R06-breaking-rebuilt", "Close to it: `R06-breaking-rebuild`"),
        ("limit", "Close to it: `limit-in-model`"),
        ("zzz", "`ci-bot explain` lists all of them."),
        ("../../README", "`ci-bot explain` lists all of them."),
    ],
)
def test_explain__of_an_unknown_rule_is_exit_2_and_names_its_neighbours(
    wrong: str, hint: str
) -> None:
    result = explain(wrong)
    assert isinstance(result.exception, SystemExit)
    assert result.exception.code == 2
    assert f"ci-bot: There is no rule `{wrong}`.\n        {hint}" in result.stderr
    assert result.stdout == ""


def test_explain__is_a_command_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ci-bot", "explain", "random"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert "# The model uses chance" in capsys.readouterr().out
