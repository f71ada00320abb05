"""A team's own words in comments: which are taken, and their variables.

The words come from a policy of the default branch, so they are no attack, and they still must not
break what stands around them: an open fence would swallow the report, an open element too. GitHub
decodes entities before it looks for mentions, so no text with one is taken. Sources: CommonMark
0.31 sections 4.5 to 4.7 and 6, GitHub's mentions and mathematics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_CHARACTERS = 2_000
VARIABLES = ("plan", "environment", "decision")

_FENCE = re.compile(r"(`{3,})[a-z]*")
_VARIABLE = re.compile(r"\{([^{}\n]{0,40})\}")
# What is put in the place of a variable: it stands in code as well as outside of it.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_ -]{0,119}")
_REFUSED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("<"), "must hold no HTML and no `<`; write a link as [words](address)"),
    (
        re.compile(r"&(?:#|[A-Za-z][A-Za-z0-9]*;)"),
        "must hold no HTML entity; write the letter itself",
    ),
    (re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9_{])"), "must mention nobody; leave the `@` out"),
    (re.compile(r"!\["), "must hold no picture; write a link to it"),
    (re.compile(r"^[ >*+-]*\[[^\]\n]+\]:", re.MULTILINE), "must define no reference `[name]:`"),
    (re.compile(r"\$\$"), "must hold no `$$`"),
    (re.compile(r"^[ >*+-]*~~~", re.MULTILINE), "must fence code by backticks, not by `~~~`"),
    (re.compile(r"`{40}"), "must hold no run of 40 backticks"),
)


def find_unfit_part_of_team_words(text: str, *, one_line: bool = False) -> str | None:
    """Why these words are not taken, to follow the name of their key; None if they are.

    Args:
        text: Markdown.
        one_line: Whether it has to fit into a sentence, and into the cell of a table.
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
    return next((why for wrong, why in found if wrong), None) or _find_open_fence_in_team_words(
        text
    )


def _find_open_fence_in_team_words(text: str) -> str | None:
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
    """The text with a value in the place of each variable; a dash if there is no plain one."""

    def fill_variable(match: re.Match[str]) -> str:
        value = values.get(match[1], "")
        return value if _PLAIN.fullmatch(value) else "–"

    return _VARIABLE.sub(fill_variable, text)
