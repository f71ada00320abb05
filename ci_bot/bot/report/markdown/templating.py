"""The Jinja environment, which fails safe: what a template prints without a filter is a code span.

Autoescape is on, so Jinja itself keeps apart what a template wrote (`Markup`) from what came in as
data, also through macros; `finalize` then escapes the data for Markdown instead of HTML. The one
way around it, joining strings inside an expression, is forbidden by a test over the templates' AST.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from ci_bot.bot.report.model import markdown_text, prose, words
from ci_bot.bot.report.model.markdown_text import SafeMarkdown
from ci_bot.bot.report.resources import resource
from ci_bot.protocol.base import short
from ci_bot.protocol.plan import SEVERITIES

if TYPE_CHECKING:
    from importlib.abc import Traversable


# What templates may do with a value: escape it, or turn a number or a known word into our text.


_HEAD_LINES = 40


def linked(label: str, url: str | None) -> SafeMarkdown:
    """One of the templates' own words, linked to a URL of the bot."""
    return markdown_text.link(SafeMarkdown(label), url)


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
    return "\n".join([*(markdown_text.clip(line, limit) for line in lines[:_HEAD_LINES]), *more])


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
        return markdown_text.cell(value) if known is None else SafeMarkdown(known)

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
    "code": markdown_text.code,
    "cell": markdown_text.cell,
    "prose": prose.prose,
    "prose_cell": prose.prose_cell,
    "fence": markdown_text.fence,
    "html_code": markdown_text.html_code,
}

SHORTENERS: dict[str, Callable[..., str]] = {
    "head": head,
    "short": short,
    "without_stop": without_stop,
    "weighed": prose.weighed,
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
    "window": _ours(words.format_window),
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


def finalize(value: Any) -> Any:
    """Numbers and Markdown made here pass; every other value becomes a code span."""
    if isinstance(value, SafeMarkdown | Markup | int):
        return value
    return markdown_text.cell(str(value))


def templates_directory() -> Traversable:
    """Where this installation's templates are."""
    return resource("templates")


def sandbox(
    directory: Traversable, finalize: Callable[[Any], Any] | None = None
) -> SandboxedEnvironment:
    """An environment over one directory. Data is only ever context, never a template's source."""

    def load(name: str) -> str | None:
        source = directory / name
        return source.read_text("utf-8") if source.is_file() else None

    return SandboxedEnvironment(
        loader=FunctionLoader(load),
        undefined=StrictUndefined,
        finalize=finalize,
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> SandboxedEnvironment:
    """The one environment of comments."""
    created = sandbox(templates_directory(), finalize)
    created.filters |= ESCAPES | SHORTENERS | WORDS
    return created
