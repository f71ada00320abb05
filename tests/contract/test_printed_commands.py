"""Every command that a sentence of ours names between backticks is one that can be typed.

Comment commands go through the parser that reads comments; for `ci-bot` and `sqlmesh` the command
line itself is asked, for `gh workflow run` the workflow. What the commands do is run in
`tests/integration/test_printed_commands.py`.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import click
import pytest
import yaml
from sqlmesh.cli.main import cli as sqlmesh_cli

from ci_bot.bot.actions.comment_command import PREFIX, HelpCommand, parse_comment_command
from ci_bot.bot.cli.commands import command_group as bot_cli
from tests.conftest import REPOSITORY
from tests.golden.samples import SAMPLES

# What stands for a value that is filled in when the sentence is said: a plan id, a name, a path.
VALUE = "0123abcd"
_COMMAND = re.compile(r"`((?:/sqlmesh|sqlmesh|ci-bot|gh workflow run) [^`]+)`")
_PLACEHOLDER = re.compile(r"<\w+>")
_FENCE = re.compile(r"^```(?:bash)?\n((?:/sqlmesh|sqlmesh|ci-bot|gh|git) .*?)^```", re.M | re.S)


def sentences() -> Iterator[str]:
    """Texts of the code, without docstrings and comments, and of the templates."""
    for path in sorted((REPOSITORY / "ci_bot").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else VALUE
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and id(node) not in docstrings:
                yield str(node.value)
    for path in sorted((REPOSITORY / "templates").glob("*.j2")):
        yield path.read_text("utf-8")


def printed() -> list[str]:
    """The commands in our sentences, and those in the fences of real comments."""
    found = {command for text in sentences() for command in _COMMAND.findall(text)}
    for sample in SAMPLES.values():
        found |= {line for block in _FENCE.findall(sample()) for line in block.splitlines()}
    return sorted(found)


def check(line: str) -> None:
    """Raises AssertionError where nobody would understand the line."""
    if line.startswith(PREFIX):
        command = parse_comment_command(_PLACEHOLDER.sub("value", line))
        # A sentence about the command names no plan.
        asks = line in (
            f"{PREFIX} accept",
            f"{PREFIX} apply",
            f"{PREFIX} help",
            f"{PREFIX} restate",
        )
        assert asks or not isinstance(command, HelpCommand), command
        return
    for part in line.split(" && "):
        program, *rest = shlex.split(part)
        if program == "gh":
            check_workflow(rest[2], rest[3:])
        elif program in ("ci-bot", "sqlmesh"):
            group = bot_cli if program == "ci-bot" else sqlmesh_cli
            check_options(group, *rest)
        else:
            assert program == "git", line


def check_options(group: click.Group, name: str, *rest: str) -> None:
    asked: list[click.Command] = [group]
    if not name.startswith("-"):
        assert name in group.commands, f"there is no command {name}"
        asked.append(group.commands[name])
    known = {
        option
        for command in asked
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word for word in (name, *rest) if word.startswith("-")}
    assert given <= known | {"--help"}, f"{name} has no {', '.join(sorted(given - known))}"


def check_workflow(file: str, options: list[str]) -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github/examples" / file).read_text("utf-8"))
    # YAML 1.1 reads `on` as a truth value.
    inputs = workflow[True]["workflow_dispatch"]["inputs"]
    assert {word.partition("=")[0] for word in options if word != "-f"} <= set(inputs)


@pytest.mark.parametrize("line", printed())
def test_printed_command__can_be_typed(line: str) -> None:
    check(line)


def test_printed_commands__are_found() -> None:
    found = printed()
    for start in (f"{PREFIX} ", "sqlmesh ", "ci-bot ", "gh ", "git "):
        assert any(line.startswith(start) for line in found), start


@pytest.mark.parametrize(
    "line",
    [
        "/sqlmesh build 0123abcd",
        "sqlmesh plann",
        "sqlmesh plan prod --restate M",
        "ci-bot review --projects .",
        "gh workflow run apply.yml -f number=7",
    ],
)
def test_check__sees_what_nobody_understands(line: str) -> None:
    with pytest.raises(AssertionError):
        check(line)
