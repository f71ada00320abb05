"""The safe Jinja environment: it makes a code span of each value printed without a filter.

Autoescape is on, so Jinja itself separates what a template wrote (`Markup`) from data, also through
macros; `finalize` then escapes the data for Markdown instead of HTML. The one way around it is to
join strings inside an expression; a test over the templates' AST forbids that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from ci_bot.bot.report import markdown_text, words
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.bot.report.model import policy_words
from ci_bot.bot.report.model.sentences import BASELINES, list_view_sentences_for_templates
from ci_bot.bot.report.words import describe_lint, describe_tests
from ci_bot.protocol.base import shorten_plan_id
from ci_bot.protocol.comment import fill_variables_of_team_words, find_unfit_part_of_team_words
from ci_bot.protocol.plan import SEVERITIES
from ci_bot.resources import find_resource

# What templates may do with a value: escape it, or turn a number or a known word into our text.


_HEAD_LINES = 40


def link_own_words(label: str, url: str | None) -> SafeMarkdown:
    """Links one of the templates' own words to a URL of the bot."""
    return markdown_text.make_link(SafeMarkdown(label), url)


def keep_first_lines(text: str, limit: int | None) -> str:
    """Returns the first lines of a long message, or all without a limit; still untrusted."""
    lines = text.strip().splitlines()
    if limit is None:
        return "\n".join(lines)
    rest = len(lines) - _HEAD_LINES
    more = [f"… {rest:,} more lines"] if rest > 0 else []
    return "\n".join(
        [*(markdown_text.clip_text(line, limit) for line in lines[:_HEAD_LINES]), *more]
    )


def drop_stop_in_comment(text: str) -> str:
    """Returns a sentence without its full stop, to be continued; still untrusted."""
    return text.strip().removesuffix(".")


def render_team_words(
    text: str, plan: str | None, environment: str, decision: str | None
) -> SafeMarkdown:
    """Renders the team's header or footer as its policy has it, with the variables filled in.

    The text was checked when the policy was read; a text that would not pass now is shown as words.
    """
    if find_unfit_part_of_team_words(text) is not None:
        return markdown_text.render_prose(text)
    known = words.DECISIONS.get(decision or "", "")  # type: ignore[call-overload]  # any word
    values = {"plan": shorten_plan_id(plan), "environment": environment, "decision": known}
    return SafeMarkdown(fill_variables_of_team_words(text, values))


def render_team_message(text: str) -> SafeMarkdown:
    """Renders the team's text about a finding: one line of Markdown, fit for a table cell."""
    fit = find_unfit_part_of_team_words(text, one_line=True) is None
    return SafeMarkdown(text) if fit else markdown_text.prose_cell(text)


_REASON = re.compile(r"(?P<rule>[\w-]*[a-z][\w-]*)(?: on |: )(?P<rest>.+)", re.DOTALL)


def find_rule_of_reason(reason: str) -> str:
    """Returns the rule with which a decision's reason begins; "" if there is none."""
    found = _REASON.fullmatch(reason)
    return found["rule"] if found else ""


def cut_rule_of_reason(reason: str) -> str:
    """Returns a decision's reason without the rule at its beginning; still untrusted."""
    found = _REASON.fullmatch(reason)
    return found["rest"] if found else reason


def _trust_own_words(function: Callable[..., str]) -> Callable[..., SafeMarkdown]:
    """Makes a filter whose words are all our own, for numbers and times."""

    def filter_value(*args: Any) -> SafeMarkdown:
        return SafeMarkdown(function(*args))

    return filter_value


def _make_word_filter(
    vocabulary: Mapping[str, str],
) -> Callable[[str | None], SafeMarkdown]:
    """Makes a filter for the words of the field; an unknown word counts as untrusted text."""

    def filter_word(value: str | None) -> SafeMarkdown:
        if value is None:
            return SafeMarkdown("–")
        known = vocabulary.get(value)
        return markdown_text.make_table_cell(value) if known is None else SafeMarkdown(known)

    return filter_word


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
    "code": markdown_text.make_code_span,
    "cell": markdown_text.make_table_cell,
    "prose": markdown_text.render_prose,
    "prose_cell": markdown_text.prose_cell,
    "fence": markdown_text.make_fenced_block,
    "html_code": markdown_text.html_code,
    "team_words": render_team_words,
    "team_message": render_team_message,
}

SHORTENERS: dict[str, Callable[..., str]] = {
    "head": keep_first_lines,
    "short": shorten_plan_id,
    "without_stop": drop_stop_in_comment,
    "reason_rule": find_rule_of_reason,
    "without_rule": cut_rule_of_reason,
    "weighed": policy_words.describe_weight_of_finding,
}

WORDS: dict[str, Callable[..., SafeMarkdown]] = {
    "linked": link_own_words,
    "maybe": _trust_own_words(words.format_optional_count),
    "money": _trust_own_words(words.format_money),
    "number": _trust_own_words(words.format_number),
    "count": _trust_own_words(words.format_count),
    "plural": _trust_own_words(words.pluralize),
    "and_more": _trust_own_words(words.and_more),
    "duration": _trust_own_words(words.duration),
    "executor_time": _trust_own_words(words.executor_time),
    "size": _trust_own_words(words.format_size),
    "percent": _trust_own_words(words.format_percent),
    "clock": _trust_own_words(words.format_clock),
    "bar": _trust_own_words(words.render_text_bar),
    "day": _trust_own_words(words.format_day),
    "window": _trust_own_words(words.format_window),
    "change": _make_word_filter(words.CHANGES),
    "category": _make_word_filter(words.CATEGORIES),
    "how_changed": _make_word_filter(words.HOW_CHANGED),
    "kind": _make_word_filter(words.KINDS),
    "action": _make_word_filter(words.ACTIONS),
    "decision": _make_word_filter(_DECISIONS),
    "severity": _make_word_filter(_SEVERITIES),
    "severity_icon": _make_word_filter(words.SEVERITY_ICONS),
    "severity_word": _make_word_filter({key: key for key in SEVERITIES}),
    "difference": _make_word_filter(_DIFFERENCES),
    "confidence": _make_word_filter(_CONFIDENCE),
    "tests": _trust_own_words(lambda check: describe_tests(check).in_comment()),
    "lint": _trust_own_words(lambda check: describe_lint(check).in_comment()),
    "baseline": _make_word_filter(BASELINES),
}


def finalize_value(value: Any) -> Any:
    """Returns numbers and our own Markdown as they are; makes a code span of every other value."""
    if isinstance(value, SafeMarkdown | Markup | int):
        return value
    return markdown_text.make_table_cell(str(value))


def find_directory_of_comment_templates() -> Path:
    """Returns the directory of this installation's templates."""
    return find_resource("templates")


def make_sandbox_of_comment_templates(
    directory: Path, finalize: Callable[[Any], Any] | None = None
) -> SandboxedEnvironment:
    """Makes an environment over one directory; data is only context, never a template's source."""

    def load_source(name: str) -> str | None:
        source = directory / name
        return source.read_text("utf-8") if source.is_file() else None

    return SandboxedEnvironment(
        loader=FunctionLoader(load_source),
        undefined=StrictUndefined,
        finalize=finalize,
        autoescape=True,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def get_environment_of_comment_templates() -> SandboxedEnvironment:
    """Returns the one environment of comments."""
    created = make_sandbox_of_comment_templates(
        find_directory_of_comment_templates(), finalize_value
    )
    created.filters |= ESCAPES | SHORTENERS | WORDS
    created.globals["sentences"] = list_view_sentences_for_templates()
    return created
