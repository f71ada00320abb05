"""The tables of docs/reference.md: inputs and outputs by action.yml, exit codes by `ci_bot.errors`.

`python -m tests.reference_page` writes them again, and with them what the action's files repeat: the
variables of the inputs, and the inputs, outputs and variables of `review/action.yml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from ci_bot.bot.actions.inputs import make_variable_name_of_input
from ci_bot.errors import EXIT_CODES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference.md"
ACTION, REVIEW = ROOT / "action.yml", ROOT / "review" / "action.yml"
END = "<!-- end of the table -->"
# Each input stands in one group, so that a reader looks through ten rows and not through forty.
GROUPS: Mapping[str, Sequence[str]] = {
    "The project": (
        "project",
        "gateway",
        "requirements",
        "python-path",
        "worker-env",
        "environment-prefix",
    ),
    "What a run does": (
        "mode",
        "baseline",
        "github-token",
        "pr-number",
        "comment-id",
        "plan-id",
        "override-reason",
        "timeout-minutes",
    ),
    "What is planned": (
        "select-model",
        "restate-model",
        "start",
        "end",
        "min-intervals",
        "preview-start",
        "preview-min-intervals",
        "skip-backfill",
        "include-unmodified",
        "forward-only",
        "allow-destructive",
    ),
    "Decision, limits and costs": (
        "fail-on",
        "max-intervals",
        "max-executor-hours",
        "diff-tolerance",
        "executor-hour-price",
        "event-logs",
    ),
    "Report, cleanup and cache": (
        "comment",
        "table-diff",
        "reclaim",
        "max-deletions",
        "cache",
        "cache-dir",
    ),
}


def read_action() -> Mapping[str, Any]:
    """action.yml."""
    data: Mapping[str, Any] = YAML(typ="safe").load((ROOT / "action.yml").read_text("utf-8"))
    return data


def render_page(text: str) -> str:
    """The page with its tables made anew."""
    for name, lines in _build_tables().items():
        begin = f"<!-- {name}: made by `python -m tests.reference_page` -->"
        table = "\n".join([begin, "", *lines, "", END])
        pattern = f"{re.escape(begin)}\n.*?{re.escape(END)}"
        text, found = re.subn(pattern, lambda _, new=table: new, text, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"docs/reference.md has {found} places for the {name}, and not one")
    return text


def render_action(text: str) -> str:
    """action.yml with a variable for each of its inputs."""
    before, _, rest = text.partition("\n  env:\n")
    inputs = YAML(typ="safe").load(text)["inputs"]
    after = re.sub(r"\A(?:    .*\n)*", "", rest)
    lines = [
        f"    {make_variable_name_of_input(name)}: ${{{{ inputs.{name} }}}}\n" for name in inputs
    ]
    return f"{before}\n  env:\n{''.join(lines)}{after}"


def render_review_action(review: str, action: str) -> str:
    """review/action.yml with the inputs, outputs and variables of action.yml: GitHub has no other
    way to give one action two images."""
    head, begin, rest = review.partition("\ninputs:\n")
    image = rest.partition("\nruns:\n")[2].partition("  args:\n")[0]
    same, runs, last = action.partition("\ninputs:\n")[2].partition("\nruns:\n")
    return f"{head}{begin}{same}{runs}{image}  args:\n{last.partition('  args:' + chr(10))[2]}"


def _build_tables() -> dict[str, list[str]]:
    action = read_action()
    return {
        "inputs": [*_render_inputs(action["inputs"])],
        "outputs": [
            *_render_table(
                ("output", "meaning"),
                ((f"`{name}`", item["description"]) for name, item in action["outputs"].items()),
            )
        ],
        "exit codes": [
            *_render_table(
                ("code", "meaning"), ((str(code), text) for code, text in EXIT_CODES.items())
            )
        ],
    }


def _render_inputs(declared: Mapping[str, Any]) -> Iterator[str]:
    for number, (title, names) in enumerate(GROUPS.items()):
        if number:
            yield ""
        yield from (f"### {title}", "")
        yield from _render_table(
            ("input", "default", "meaning"),
            (
                (
                    f"`{name}`",
                    _format_default(declared[name]["default"]),
                    declared[name]["description"],
                )
                for name in names
            ),
        )


def _format_default(value: str) -> str:
    """An expression of GitHub's as it is read by people; nothing where nothing is given."""
    return "the workflow's token" if value.startswith("$") else f"`{value}`" if value else ""


def _render_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.strip() for cell in row)} |"


if __name__ == "__main__":
    ACTION.write_text(render_action(ACTION.read_text("utf-8")), encoding="utf-8")
    review = render_review_action(REVIEW.read_text("utf-8"), ACTION.read_text("utf-8"))
    REVIEW.write_text(review, encoding="utf-8")
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), encoding="utf-8")
