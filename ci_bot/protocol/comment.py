"""What a comment holds beside its template.

The hidden record of an earlier run for a later one, and a team's own words with their variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ci_bot.protocol.base import Contract, Count, Name, PlanId, Sha, Timestamp
from ci_bot.protocol.plan import Decision, Window
from ci_bot.protocol.review_report import Report

Phase = Literal[
    "planning",
    "planned",
    "no_changes",
    "plan_failed",
    "applying",
    "applied",
    "apply_failed",
    "refused",
    "cancelled",
    "closed",
    "cleanup_failed",
]


class PlanHistoryEntry(Contract):
    """One earlier plan of the same pull request."""

    at: Timestamp
    head: Sha | None
    plan: PlanId | None
    decision: Decision | None
    run: Name | None


class Marker(Contract):
    """The first line of the comment. Readers take any `v` they know and ignore other comments.

    `key` distinguishes the projects of one repository; it is compared as a whole, never as a
    substring.
    """

    v: Literal[1] = 1
    key: Name
    pr: Count
    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    env: Name
    plan: PlanId | None = None
    window: Window | None = None
    phase: Phase
    decision: Decision | None = None
    run_id: Count = 0
    attempt: Count = 1
    valid_at: Timestamp = Field(description="When the facts in the comment were true.")
    report_sha256: Name | None = Field(
        default=None, description="Of report.json in the artifact of run `report_run`."
    )
    report_run: Count | None = None
    cut: list[Name] = Field(default_factory=list)
    history: list[PlanHistoryEntry] = Field(default_factory=list, max_length=20)


def choose_review_phase(report: Report) -> Phase:
    """Returns the phase of the comment after a review."""
    if report.failure is not None:
        return "plan_failed"
    return "no_changes" if report.decision == "no_changes" else "planned"


def choose_apply_phase(result: str) -> Phase:
    """Returns the phase of the comment after an apply with this result."""
    phases: dict[str, Phase] = {
        "applied": "applied",
        "nothing_to_apply": "applied",
        "refused": "refused",
        "cancelled": "cancelled",
    }
    return phases.get(result, "apply_failed")


MOST_CHARACTERS = 2_000
VARIABLES = ("plan", "environment", "decision")
_FENCE = re.compile(r"(`{3,})[a-z]*")
_VARIABLE = re.compile(r"\{([^{}\n]{0,40})\}")
# What may replace a variable: it has to be plain both in code and outside of it.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ -]{0,119}")
_REFUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("<"), "must hold no HTML and no `<`; write a link as [words](address)"),
    (
        re.compile(r"&(?:#|[A-Za-z][A-Za-z0-9]*;)"),
        "must hold no HTML entity; write the letter itself",
    ),
    (
        re.compile(r"(?<![A-Za-z0-9])@(?=\\?[A-Za-z0-9_{])"),
        "must mention nobody; leave the `@` out",
    ),
    (re.compile(r"!\["), "must hold no picture; write a link to it"),
    (re.compile(r"^[ >*+-]*\[[^\]\n]+\]:", re.MULTILINE), "must define no reference `[name]:`"),
    (re.compile(r"\$\$"), "must hold no `$$`"),
    (re.compile(r"^[ >*+-]*~~~", re.MULTILINE), "must fence code by backticks, not by `~~~`"),
    (re.compile(r"`{40}"), "must hold no run of 40 backticks"),
)


def find_unfit_part_of_team_words(text: str, *, one_line: bool = False) -> str | None:
    """Says why these words are refused, to follow the name of their key; None if they are fine.

    Args:
        text: Markdown.
        one_line: Whether it has to fit into a sentence and into a cell of a table.
    """
    printable = all(char.isprintable() or char == "\n" for char in text)
    crowded = one_line and ("\n" in text or "|" in text or "```" in text)
    unknown = [name for name in _VARIABLE.findall(text) if name not in VARIABLES]
    found = (
        (not text.strip(), "must say something"),
        (len(text) > MOST_CHARACTERS, f"must have at most {MOST_CHARACTERS:,} characters"),
        (not printable, "must hold no invisible characters"),
        (crowded, "must be one line without `|` and fences"),
        *((pattern.search(text) is not None, why) for pattern, why in _REFUSED),
        (bool(unknown), f"must hold no variables but {', '.join(map('{{{}}}'.format, VARIABLES))}"),
    )
    return next((why for wrong, why in found if wrong), None) or _find_open_fence(text)


def _find_open_fence(text: str) -> str | None:
    fence = ""
    for line in text.split("\n"):
        if "```" not in line:
            continue
        match = _FENCE.fullmatch(line)
        if match is None:
            return "must have a fence's backticks at the start of a line, with one word at most"
        if not fence:
            fence = match[1]
        elif line == match[1] and len(line) >= len(fence):
            fence = ""
        else:
            return "must close a fence before another one begins"
    return "must close its fence" if fence else None


def fill_variables_of_team_words(text: str, values: Mapping[str, str]) -> str:
    """Replaces each variable in the text by its value, or by a dash if the value is not plain."""

    def fill_variable(match: re.Match[str]) -> str:
        value = values.get(match[1], "")
        return value if _PLAIN.fullmatch(value) else "–"

    return _VARIABLE.sub(fill_variable, text)
