"""What templates may do with a value: escape it, or turn a number or a known word into our text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ci_bot.bot.comment.text import markdown, prose, weights, words
from ci_bot.bot.comment.text.markdown import SafeMarkdown
from ci_bot.contracts.base import short
from ci_bot.contracts.documents.plan import SEVERITIES

_HEAD_LINES = 40


def linked(label: str, url: str | None) -> SafeMarkdown:
    """One of the templates' own words, linked to a URL of the bot."""
    return markdown.link(SafeMarkdown(label), url)


def maybe(value: int | None) -> SafeMarkdown:
    """A count, or a dash where it is unknown: never 0."""
    return SafeMarkdown("–" if value is None else words.number(value))


def head(text: str, limit: int | None) -> str:
    """The first lines of a long message, unless there is no limit; still untrusted."""
    lines = text.strip().splitlines()
    if limit is None:
        return "\n".join(lines)
    rest = len(lines) - _HEAD_LINES
    more = [f"… {rest:,} more lines"] if rest > 0 else []
    return "\n".join([*(markdown.clip(line, limit) for line in lines[:_HEAD_LINES]), *more])


def without_stop(text: str) -> str:
    """A sentence to go on after; still untrusted."""
    return text.strip().removesuffix(".")


def _ours(function: Callable[..., str]) -> Callable[..., SafeMarkdown]:
    """A filter whose words are all our own, for numbers and times."""

    def filtered(*args: Any) -> SafeMarkdown:
        return SafeMarkdown(function(*args))

    return filtered


def _word_of(vocabulary: Mapping[str, str]) -> Callable[[str | None], SafeMarkdown]:
    """A filter for the words of the field; one that we do not know is untrusted text."""

    def filtered(value: str | None) -> SafeMarkdown:
        if value is None:
            return SafeMarkdown("–")
        known = vocabulary.get(value)
        return markdown.cell(value) if known is None else SafeMarkdown(known)

    return filtered


_DECISIONS: dict[str, str] = {
    key: f"{words.DECISION_ICONS[key]} {word}" for key, word in words.DECISIONS.items()
}
_SEVERITIES = {key: f"{icon}\u00a0{key}" for key, icon in words.SEVERITY_ICONS.items()}
_DIFFERENCES = {
    "changed": "another version than the reviewed one",
    "added": "only in the current plan",
    "gone": "only in the reviewed plan",
    "field": "this setting differs",
}
_CONFIDENCE = {name: name for name in ("high", "medium", "low", "unknown")}

ESCAPES: dict[str, Callable[..., SafeMarkdown]] = {
    "code": markdown.code,
    "cell": markdown.cell,
    "prose": prose.prose,
    "prose_cell": prose.prose_cell,
    "fence": markdown.fence,
    "html_code": markdown.html_code,
}
SHORTENERS: dict[str, Callable[..., str]] = {
    "head": head,
    "short": short,
    "without_stop": without_stop,
    "weighed": weights.weighed,
}
WORDS: dict[str, Callable[..., SafeMarkdown]] = {
    "linked": linked,
    "maybe": maybe,
    "money": _ours(words.money),
    "number": _ours(words.number),
    "count": _ours(words.count),
    "plural": _ours(words.plural),
    "and_more": _ours(words.and_more),
    "duration": _ours(words.duration),
    "executor_time": _ours(words.executor_time),
    "size": _ours(words.size),
    "percent": _ours(words.percent),
    "clock": _ours(words.clock),
    "bar": _ours(words.bar),
    "day": _ours(words.day),
    "window": _ours(words.window),
    "change": _word_of(words.CHANGES),
    "category": _word_of(words.CATEGORIES),
    "how_changed": _word_of(words.HOW_CHANGED),
    "kind": _word_of(words.KINDS),
    "action": _word_of(words.ACTIONS),
    "decision": _word_of(_DECISIONS),
    "severity": _word_of(_SEVERITIES),
    "severity_icon": _word_of(words.SEVERITY_ICONS),
    "severity_word": _word_of({key: key for key in SEVERITIES}),
    "difference": _word_of(_DIFFERENCES),
    "confidence": _word_of(_CONFIDENCE),
}
