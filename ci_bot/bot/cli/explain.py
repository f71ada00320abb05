"""`ci-bot explain`: the page of a rule, or the list of all rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ci_bot.errors import EXIT_DONE, BadInput
from ci_bot.host import Machine
from ci_bot.protocol.plan import SEVERITIES
from ci_bot.protocol.rules import (
    RULES,
    SCOPES,
    TOPICS,
    RuleSpec,
    UnknownRule,
    find_rule,
    read_rule_page,
)

# A link to another page of the documentation, which a terminal cannot follow.
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
# More names would not fit on one line.
_MOST = 8


def print_rule_page(machine: Machine, name: str | None) -> int:
    """Prints the page of the rule `name`, or the list if it is None; returns the exit code.

    Raises:
        BadInput: there is no such rule.
    """
    text = _render_rule_list() if name is None else _read_rule_page(name)
    if name is not None and machine.out.isatty():
        _draw_rule_page(machine, text)
    else:  # a program that reads a pipe needs the page unchanged
        print(text, file=machine.out, flush=True)
    return EXIT_DONE


def _draw_rule_page(machine: Machine, text: str) -> None:
    """Prints the page for a terminal: headings, code, and the words of its links."""
    from rich.console import Console
    from rich.markdown import Markdown

    from ci_bot.bot.report import make_screen

    screen = make_screen(machine)
    console = Console(
        file=machine.out, width=screen.width, no_color=not screen.colour, highlight=False
    )
    console.print(Markdown(_LINK.sub(r"\1", text), hyperlinks=False))


def _read_rule_page(name: str) -> str:
    try:
        spec = find_rule(name)
    except UnknownRule as error:
        near = ", ".join(f"`{id_}`" for id_ in _complete_rule_names(name) or error.near)
        raise BadInput(
            f"There is no rule `{name}`.",
            hint=f"Close to it: {near}." if near else "`ci-bot explain` lists all of them.",
            reason_code="unknown_rule",
        ) from None
    weights = [f"{spec.severity} by default", *spec.also]
    return "\n".join(
        [f"{spec.id}: {'; '.join(weights)}; {SCOPES[spec.scope]}", "", read_rule_page(name)]
    )


def _complete_rule_names(name: str) -> list[str]:
    """Lists the rules whose id begins with `name`; `R6` is `R06`."""
    begin = re.sub(r"^r(?=\d(?!\d))", "r0", name.lower())
    return [id_ for id_ in RULES if id_.lower().startswith(begin)][:_MOST]


def _render_rule_list() -> str:
    lines = [f"{len(RULES)} rules. `ci-bot explain RULE` prints the page of one."]
    for topic, title in TOPICS.items():
        lines += ["", title, *_render_topic_rows(topic)]
    return "\n".join(lines)


def _render_topic_rows(topic: str) -> Iterator[str]:
    found = [spec for spec in RULES.values() if spec.topic == topic]
    for spec in sorted(found, key=_sort_rules):
        yield f"  {spec.severity:8} {spec.id:30} {spec.title}"


def _sort_rules(spec: RuleSpec) -> tuple[int, str]:
    return SEVERITIES.index(spec.severity), spec.id
