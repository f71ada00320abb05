"""How text is written so that the Actions runner takes it for text.

The runner reads every line of stdout and of stderr. It takes `::name prop=value::data` at the start
of a line for a command, and the older `##[name prop=value;]data` anywhere in a line. Sources:
`ActionCommand.cs` in actions/runner (what is read) and `command.ts` in actions/toolkit (what is
written). `%` comes first, or the escapes themselves would be escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from ci_bot.secrets.terminal_codes import strip_terminal_codes

_DROPPED_ENDS = re.compile(r"\A[\s=]+|\s+\Z")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_data(text: str) -> str:
    """The part of a command after the second `::`."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """The value of a property, without what the runner drops: `=` in front, spaces at the ends."""
    kept = _DROPPED_ENDS.sub("", text)
    return escape_data(kept).replace(":", "%3A").replace(",", "%2C")


def plain_line(text: str) -> str:
    """One line of foreign text for the log, in which the runner finds no command.

    Colours go. Line breaks, control characters and invisible or direction-changing ones are shown
    as `\\u{..}`: a carriage return starts a new line for the runner, and its comparisons skip
    zero-width characters. `##[` gets a space, and a line that begins with `::` a bar before it.
    """
    text = visible(strip_terminal_codes(text)).replace("##[", "## [")
    return f"| {text}" if text.lstrip().startswith("::") else text


def visible(text: str) -> str:
    """`text` with every character shown that a reader could not see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        f"\\u{{{ord(char):x}}}" if char != "\t" and unicodedata.category(char) in _HIDDEN else char
        for char in text
    )


@dataclass(frozen=True, kw_only=True)
class Escapes:
    """The three escapes together, so that a test can take one of them away."""

    data: Callable[[str], str] = escape_data
    property: Callable[[str], str] = escape_property
    line: Callable[[str], str] = plain_line


TOOLKIT = Escapes()


def format_command(
    name: str, data: str, properties: dict[str, str | int | None], escapes: Escapes = TOOLKIT
) -> str:
    """One command as one line, without its line break. Properties that are empty are left out."""
    pairs = [
        f"{key}={value}"
        for key, given in properties.items()
        if given is not None and (value := escapes.property(str(given)))
    ]
    return f"::{name}{' ' if pairs else ''}{','.join(pairs)}::{escapes.data(data)}"
