"""The pages of the rules: what is wrong with one, and their index.

    python -m tests.rule_pages              writes docs/rules/README.md anew, and on each page the
                                            line that says how a team weighs the rule otherwise

A page declares its rule in the lines at its top, and explains it below them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml

from ci_bot.bot.policy.weighable_rules import CODE_ON_LOAD, PROTECTED, UNWEIGHED
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import (
    FACTS,
    PROOFS,
    RULES,
    SCOPES,
    TOPICS,
    RuleSpec,
    find_rule,
    parse_declaration,
)

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "rules"
INDEX = FOLDER / "README.md"
SEVERITIES = get_args(Severity)
SECTIONS = ("**What it sees.** ", "**Why it matters.** ", "## Fires", "## Stays quiet")
_POLICY = "**Another weight, or none.** "
LAST_SECTION = "## How to clear it"
_PAGE = re.compile(r"---\n(?P<top>.*?)---\n\n# (?P<title>[^\n]+)\n\n(?P<body>.*)", re.DOTALL)
_FIELDS = ["id", "title", "severity", "also", "scope", "needs", "topic", "cleared_by"]
_OPTIONAL = {"also": "", "cleared_by": []}
_ALSO = re.compile(r"(?P<severities>\w+(?:, \w+)*) where [^;]+")


def faults(id_: str, text: str) -> list[str]:
    """What is wrong with a page; nothing where it is as it should be."""
    page = _PAGE.fullmatch(text)
    if page is None:
        return ["it does not begin with what it declares, and its title"]
    fields = yaml.safe_load(page["top"])
    if not isinstance(fields, dict) or list(fields) != [f for f in _FIELDS if f in fields]:
        return [f"it does not declare {', '.join(_FIELDS)}, in this order"]
    if fields.keys() | _OPTIONAL.keys() != set(_FIELDS) or None in fields.values():
        return [f"it does not declare {', '.join(_FIELDS)}, each with a value"]
    return [*_of_fields(id_, fields, page["top"]), *_of_text(fields, page["title"], page["body"])]


def _of_fields(id_: str, fields: Mapping[str, Any], top: str) -> Iterator[str]:
    spec = parse_declaration(top)
    lists = {"needs": list(spec.needs), "cleared_by": list(spec.cleared_by)}
    read = {**spec.__dict__, **lists, "also": "; ".join(spec.also)}
    if read != {**_OPTIONAL, **fields}:
        yield "what the program reads is not what YAML says"
    if fields["id"] != id_:
        yield "it is called otherwise than its file"
    if not all(_ALSO.fullmatch(part) for part in spec.also):
        yield "`also` is not made of `severity where ...`, apart by `; `"
    others = [one for part in spec.also for one in part.partition(" where ")[0].split(", ")]
    if not set(others) <= set(SEVERITIES) or spec.severity not in SEVERITIES:
        yield "a severity is unknown"
    if len({spec.severity, *others}) != 1 + len(others):
        yield "a severity is named twice"
    if spec.scope not in SCOPES or spec.topic not in TOPICS:
        yield "its scope or its topic is unknown"
    if unknown := sorted(set(spec.needs) - FACTS.keys()):
        yield f"nobody knows the need {', '.join(unknown)}"
    if list(spec.needs) != sorted(set(spec.needs)):
        yield "its needs are not in order"
    if not set(spec.cleared_by) <= PROOFS.keys():
        yield "nobody knows what it is cleared by"
    if spec.cleared_by and "blocker" in spec.severities:
        yield "what blocks is cleared by no proof"


def _of_text(fields: Mapping[str, Any], title: str, body: str) -> Iterator[str]:
    if title != fields["title"]:
        yield "its heading is not its title"
    places = [body.find(section) for section in (*SECTIONS, LAST_SECTION)]
    if -1 in places or places != sorted(places):
        yield "its sections are not those of a page, in their order"
    if not body.endswith("\n") or not body.partition(LAST_SECTION)[2].strip():
        yield "it does not say how to clear it"


def with_policy(id_: str, text: str) -> str:
    """A page with the line that says how a team weighs its rule otherwise."""
    line = f"{_POLICY}{_describe_policy(id_)}"
    without = re.sub(rf"{re.escape(_POLICY)}[^\n]*\n\n", "", text)
    return without.replace("\n## Fires\n", f"\n{line}\n\n## Fires\n", 1)


def _describe_policy(id_: str) -> str:
    if id_ == CODE_ON_LOAD:
        return (
            "A [policy](../policy.md#whom-a-team-trusts) cannot weigh it. With `trust` it is a note, "
            "if people with write permission wrote every commit and GitHub has verified them all."
        )
    page = "[policy](../policy.md#what-is-not-made-lighter)"
    if id_ in UNWEIGHED:
        return f"A {page} cannot give it one, because {UNWEIGHED[id_]}."
    if id_ in PROTECTED:
        return (
            f"A {page} does not make it lighter, because {PROTECTED[id_]}. It can ignore it for "
            "named models or paths, until a day."
        )
    return f"A team sets it in its [policy](../policy.md): `rule: {id_}`."


def index() -> str:
    """docs/rules/README.md."""
    specs = sorted(RULES.values(), key=lambda spec: spec.id)
    return "\n".join(
        [
            "<!-- made by `python -m tests.rule_pages` of the pages beside it -->",
            "",
            "# Rules",
            "",
            f"{len(specs)} rules look at a change. Each has a page; `ci-bot explain RULE` prints it. "
            "A blocker makes the decision No-Go, high makes it",
            "Review, and the others are notes. A rule's weight is the first one below unless its "
            "page names the case for another.",
            "",
            "## By severity",
            "",
            "| severity | rules |",
            "|:--|:--|",
            *(_by_severity(specs)),
            "",
            *(line for topic in TOPICS for line in _of_topic(topic, specs)),
        ]
    )


def _by_severity(specs: Iterable[RuleSpec]) -> Iterator[str]:
    every = list(specs)
    for severity in SEVERITIES:
        links = [_link(spec) for spec in every if spec.severity == severity]
        yield f"| {severity} ({len(links)}) | {', '.join(links)} |"


def _of_topic(topic: str, specs: Iterable[RuleSpec]) -> Iterator[str]:
    yield from (
        f"## {TOPICS[topic]}",
        "",
        "| rule | severity | what it is about |",
        "|:--|:--|:--|",
    )
    found = [spec for spec in specs if spec.topic == topic]
    for spec in sorted(found, key=lambda spec: (SEVERITIES.index(spec.severity), spec.id)):
        weights = [spec.severity, *(one for one in SEVERITIES if one in spec.severities)]
        yield f"| {_link(spec)} | {', '.join(dict.fromkeys(weights))} | {_plain(spec.title)} |"
    yield ""


def _link(spec: RuleSpec) -> str:
    return f"[{spec.id}]({spec.id}.md)"


def _plain(text: str) -> str:
    return text.replace("*", r"\*").replace("|", r"\|")


if __name__ == "__main__":
    for name in RULES:
        find_rule(name)  # a page that cannot be read is told by its name
        file = FOLDER / f"{name}.md"
        file.write_text(with_policy(name, file.read_text("utf-8")), encoding="utf-8")
    INDEX.write_text(index(), encoding="utf-8")
