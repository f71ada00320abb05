"""Templates of Jinja in a text, found in one pass: nothing is rendered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["ALL_TEMPLATES", "BLOCK", "EXPRESSION", "REMARK", "list_templates", "replace_templates"]

EXPRESSION: Final = "{{"
BLOCK: Final = "{%"
REMARK: Final = "{#"
ALL_TEMPLATES: Final = (EXPRESSION, BLOCK, REMARK)
_CLOSED_BY = {EXPRESSION: "}}", BLOCK: "%}", REMARK: "#}"}
_IF = re.compile(r"\{%-?[ \t]*if\b")
_ENDIF = re.compile(r"\bendif[ \t]*-?%\}")


def list_templates(
    text: str, kinds: tuple[str, ...] = ALL_TEMPLATES, *, whole_conditions: bool = False
) -> Iterator[tuple[int, int]]:
    """Yields where each template begins and ends. A template that is never closed does not count.

    A pattern such as `\\{\\{.*?\\}\\}` searches the whole rest of the text for the end of each
    opening bracket: with 60 kB of them it takes minutes. Here a missing end is searched for only
    once for each kind.

    Args:
        kinds: The opening brackets of templates that count.
        whole_conditions: Whether `{% if … endif %}` in one line counts as one template.
    """
    opens = re.compile("|".join(map(re.escape, kinds)))
    unclosed: set[str] = set()
    no_endif_before = 0
    at = 0
    while len(unclosed) < len(kinds) and (found := opens.search(text, at)) is not None:
        start, kind = found.span()[0], found[0]
        at = start + 1
        if kind in unclosed:
            continue
        if whole_conditions and start >= no_endif_before and (begun := _IF.match(text, start)):
            line_end = text.find("\n", start)
            line_end = len(text) if line_end < 0 else line_end
            if (ended := _ENDIF.search(text, begun.end(), line_end)) is not None:
                yield start, ended.end()
                at = ended.end()
                continue
            no_endif_before = line_end
        closed = text.find(_CLOSED_BY[kind], start + len(kind))
        if closed < 0:
            unclosed.add(kind)
            continue
        at = closed + len(_CLOSED_BY[kind])
        yield start, at


def replace_templates(
    text: str,
    replace: Callable[[str], str],
    kinds: tuple[str, ...] = ALL_TEMPLATES,
    *,
    whole_conditions: bool = False,
) -> str:
    """Returns the text with each of its templates replaced; see `list_templates`.

    Args:
        replace: Gets a whole template, and returns its replacement.
    """
    pieces, done = [], 0
    for start, end in list_templates(text, kinds, whole_conditions=whole_conditions):
        pieces += [text[done:start], replace(text[start:end])]
        done = end
    return "".join([*pieces, text[done:]])
