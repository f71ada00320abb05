"""Shortening a text that may hold secrets which are not taken out yet."""

from __future__ import annotations

from ci_bot.secrets.redactor import hide

LONGEST_QUOTED = 60


def shortened(text: str, most: int) -> str:
    """The beginning of `text`, at most `most` characters long, without half a word at its end.

    Half a secret looks like no secret. The process that cuts knows of none, and the one that takes
    them out gets the text later.
    """
    if len(text) <= most:
        return text
    head = text[: most - 1]
    if not text[most - 1].isspace():
        words = head.split()
        head = head[: head.rindex(words[-1])] if words and not head[-1].isspace() else head
    return f"{head.rstrip()}…"


def quoted_value(value: str) -> str:
    """A value that a person gave, for a sentence: in quotes, on one line, and not for ever.

    What looks like a credential is taken out first: nobody would recognise half of one.
    """
    text = hide(value.strip())
    rest = len(text) - LONGEST_QUOTED
    more = f" and {rest:,} more characters" if rest > 0 else ""
    return f"{text[:LONGEST_QUOTED]!r}{more}"
