"""Shortening a text that may hold secrets which are not taken out yet."""

from __future__ import annotations


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
