"""Numbers, times, results of checks and the words of the field, as people read them.

All text here is ours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

from ci_bot.protocol import cost
from ci_bot.protocol.plan import Decision, LintCheck, ShortWindow, TestsCheck, WindowCause
from ci_bot.protocol.plan_identity import OptionName, PlanOption
from ci_bot.protocol.reasons import OF_THE_BOT
from ci_bot.protocol.rules import quote_name

duration = cost.format_duration
executor_time = cost.format_executor_time

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_THOUSAND = 1000

DECISIONS: dict[Decision, str] = {
    "go": "Go",
    "review": "Review",
    "no_go": "No-Go",
    "no_changes": "No model changes",
}

DECISION_ICONS: dict[Decision, str] = {
    "go": "🟢",
    "review": "🟡",
    "no_go": "🔴",
    "no_changes": "⚪",
}

SEVERITY_ICONS = {"blocker": "🔴", "high": "🟠", "medium": "🟡", "low": "🔵", "info": "⚪"}

CHANGES = {
    "added": "added",
    "removed": "removed",
    "direct": "modified",
    "indirect": "downstream",
    "metadata": "metadata only",
}

# The heaviest first.
CHANGE_ORDER = ("removed", "direct", "added", "indirect", "metadata")

HOW_CHANGED = {
    "dropped": "dropped",
    "retyped": "another type",
    "computed": "computed differently",
    "added": "new",
    "reordered": "another order of columns",
    "rows": "other rows",
    "unknown": "cannot be known",
}

CATEGORIES = {
    "breaking": "breaking",
    "non_breaking": "non-breaking",
    "forward_only": "forward-only",
    "indirect_breaking": "indirect breaking",
    "indirect_non_breaking": "indirect non-breaking",
    "metadata": "metadata",
    "uncategorized": "not categorized",
}

ACTIONS = {
    "full_refresh": "full refresh",
    "recreate_view": "view",
    "incremental": "incremental",
    "seed": "seed",
}

KINDS = {
    "INCREMENTAL_BY_TIME_RANGE": "incremental by time",
    "INCREMENTAL_BY_UNIQUE_KEY": "incremental by key",
    "INCREMENTAL_BY_PARTITION": "incremental by partition",
    "INCREMENTAL_UNMANAGED": "incremental unmanaged",
    "FULL": "full",
    "VIEW": "view",
    "SEED": "seed",
    "SCD_TYPE_2": "SCD type 2",
    "SCD_TYPE_2_BY_TIME": "SCD type 2 by time",
    "SCD_TYPE_2_BY_COLUMN": "SCD type 2 by column",
    "EMBEDDED": "embedded",
    "EXTERNAL": "external",
    "MANAGED": "managed",
    "CUSTOM": "custom",
}

# Why there is no plan if SQLMesh was stopped before its end, by reason code. Then nothing is known
# about the project, not even whether it loads.
CUT_OFF: Mapping[str, str] = {
    **{
        code: OF_THE_BOT[code]
        for code in ("bad_policy", "disk_full", "disk_limit", "timeout", "worker_not_started")
    },
    **dict.fromkeys(("worker_crashed", "worker_failed"), "the worker ended before it could answer"),
    "answer_refused": "the worker's answer was refused",
    "memory_limit": "the worker needed more memory than it may have",
}


def format_number(value: float) -> str:
    """Formats a number with thousands separators.

    If it is not whole, it has one decimal, or two digits if it is below 1.
    """
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def and_more(items: Sequence[object], shown: int, more: int = 0) -> str:
    """Returns the end of a list that is cut after `shown` items: " and 3 more", or "" if not cut.

    `more` counts further items that the list does not hold.
    """
    rest = max(len(items) - shown, 0) + more
    return f" and {format_number(rest)} more" if rest else ""


def format_optional_count(value: int | None) -> str:
    """Formats a count; a dash, never 0, if it is unknown."""
    return "–" if value is None else format_number(value)


def format_count(value: int, noun: str) -> str:
    """Returns "1 model", "2 models", "0 models"."""
    return f"{format_number(value)} {pluralize(value, noun)}"


def describe_askers(logins: Iterable[str]) -> str:
    """Says who asks, each person once: "`@ada` asks", "`@ada`, `@bo` ask"."""
    people = sorted({f"`@{login}`" for login in logins})
    return f"{', '.join(people)} {'asks' if len(people) == 1 else 'ask'}"


_NOTHING_TO_DO = "nothing to do"


def describe_clearing(clears_when: str) -> str:
    """Returns what ends a finding, as a sentence; "" if nobody has to do anything about it."""
    text = clears_when.strip().rstrip(".")
    if text.lower() in ("", _NOTHING_TO_DO):
        return ""
    if text.lower().startswith(_NOTHING_TO_DO):
        return f"{text[:1].upper()}{text[1:]}."
    return f"Clears when: {text}."


def pluralize(value: int, noun: str) -> str:
    """Returns `noun` in the singular or plural, as `value` needs; only the last word changes."""
    if value == 1:
        return noun
    if noun.endswith(("ch", "sh", "s", "x")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def format_size(value: int) -> str:
    """Formats bytes in decimal units: "512 bytes", "1.2 GB"."""
    amount = float(value)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= _THOUSAND
    raise AssertionError("unreachable: the last unit always returns")


def format_money(value: float, currency: str | None = None) -> str:
    """Formats an amount, with its currency if one is given: "14.20 EUR"."""
    return f"{value:,.2f} {currency}" if currency else f"{value:,.2f}"


def format_percent(rate: float) -> str:
    """Formats a rate as a percentage; "100 %" and "0 %" only if it is exactly that."""
    if rate in (0.0, 1.0):
        return f"{rate:.0%}".replace("%", " %")
    shown = min(max(rate * 100, 0.01), 99.99)
    return f"{shown:.2f}".rstrip("0").rstrip(".") + " %"


def parse_moment(timestamp: str) -> datetime:
    """Returns the time of a contract's timestamp, in UTC."""
    return cost.read_time(timestamp).astimezone(timezone.utc)


def format_clock(timestamp: str, now: str | None = None) -> str:
    """Returns "10:14 UTC" on the day of `now`, otherwise the time with its date."""
    then = parse_moment(timestamp)
    if now is not None and parse_moment(now).date() == then.date():
        return f"{then:%H:%M} UTC"
    return f"{then:%Y-%m-%d %H:%M} UTC"


def format_day(timestamp: str) -> str:
    """Returns the date, with the time of day if that is not midnight."""
    then = parse_moment(timestamp)
    return f"{then:%Y-%m-%d}" if then == _start_of_day(then) else f"{then:%Y-%m-%d %H:%M}"


def _start_of_day(then: datetime) -> datetime:
    return then.replace(hour=0, minute=0, second=0, microsecond=0)


def format_last_day(end: str) -> str:
    """Formats an exclusive end: the last day that is included, or the moment if not midnight."""
    then = parse_moment(end)
    if then == _start_of_day(then):
        return f"{then - timedelta(days=1):%Y-%m-%d}"
    return f"{then:%Y-%m-%d %H:%M}"


def format_window(start: str | None, end: str | None) -> str:
    """Returns "2024-01-01 → 2024-03-31", both days included; "–" if nothing is bounded."""
    if start is None and end is None:
        return "–"
    first = format_day(start) if start else "the beginning"
    last = format_last_day(end) if end else "now"
    # No-break spaces keep a window on one line of a narrow table.
    return first if first == last else f"{first}\u00a0→\u00a0{last}"


def format_covering_window(windows: list[tuple[str | None, str | None]]) -> str | None:
    """Returns the window that covers all of them; None if none has a start, or none an end."""
    starts = [start for start, _ in windows if start]
    ends = [end for _, end in windows if end]
    if not starts or not ends:
        return None
    return format_window(min(starts, key=parse_moment), max(ends, key=parse_moment))


def render_text_bar(done: int, total: int, width: int = 24) -> str:
    """Returns a bar of text for `done` of `total`; it is full only if all is done."""
    filled = width if total and done >= total else min(width * done // max(total, 1), width - 1)
    return "█" * filled + "░" * (width - filled)


# The plan's options that somebody has set, each with who set it.


_SHOWN = 8


def describe_options(options: Sequence[PlanOption]) -> str | None:
    """Returns "`skip-backfill: true` (project's `cicd_bot.skip_pr_backfill`), ..." or None."""
    chosen = [option for option in options if option.source != "review"]
    if not chosen:
        return None
    shown = ", ".join(
        f"`{option.name}: {_strip_markup(option.value)}` ({describe_option_source(option)})"
        for option in chosen[:_SHOWN]
    )
    return f"{shown} and {len(chosen) - _SHOWN:,} more" if len(chosen) > _SHOWN else shown


def describe_option_source(option: PlanOption) -> str:
    """Says who set it, as a part of a sentence."""
    return f"project's `{_strip_markup(option.key)}`" if option.key else "input"


def find_plan_option(options: Sequence[PlanOption], name: OptionName) -> PlanOption | None:
    """Returns the option of this name; None if nobody set it."""
    return next((option for option in options if option.name == name), None)


def _strip_markup(text: str) -> str:
    return text.replace("`", "'")


# Why the environment gets less history than prod, in one sentence.


_CAUSES: dict[WindowCause, str] = {
    "end": "because the input `end` says so",
    "forward_only_plan": "because the whole plan is forward-only",
    "virtual_environment_mode": "because `virtual_environment_mode` is not `full`",
}
# Tried: only `start` reaches every model. `preview-start` reaches the previews of forward-only
# models, and `min-intervals` all other models.
_WIDER = "to see more, set the input `start` (`--start` on a laptop) of review and apply"
_MODELS_SHOWN = 3


def short_window(window: ShortWindow, environment: str, options: Sequence[PlanOption] = ()) -> str:
    """Returns "`pr_7` gets 2024-11-30 only, because forward-only `a` is in the plan; ...".

    Args:
        options: The plan's options; one of them may be the cause.
    """
    if window.start is None and window.end is not None:
        return f"`{environment}` ends with {format_last_day(window.end)}, {_CAUSES['end']}."
    span = format_window(window.start, window.end).replace("\u00a0", " ")
    text = f"`{environment}` gets {span} only, {_describe_window_reason(window, options)}"
    return f"{text}." if window.cause == "start" else f"{text}; {_WIDER}."


def _describe_window_reason(window: ShortWindow, options: Sequence[PlanOption]) -> str:
    if window.cause == "start":
        return _describe_start_source(find_plan_option(options, "start"))
    if window.cause == "min_intervals":
        option = find_plan_option(options, "min-intervals")
        name = (
            f"the {describe_option_source(option)}" if option and option.key else "`min-intervals`"
        )
        return f"because {name} is set and `start` is not"
    known = _CAUSES.get(window.cause)
    if known is not None:
        return known
    names = ", ".join(f"`{name}`" for name in window.models[:_MODELS_SHOWN])
    more = len(window.models) - _MODELS_SHOWN
    names += f" and {more:,} more" if more > 0 else ""
    one = len(window.models) == 1
    if window.cause == "auto_restatement":
        return f"because {names} {'has' if one else 'have'} an `auto_restatement_cron`"
    return f"because forward-only {names} {'is' if one else 'are'} in the plan"


def _describe_start_source(option: PlanOption | None) -> str:
    if option is not None and option.source == "review":
        return "because the reviewed plan begins there"
    named = describe_option_source(option) if option is not None and option.key else "input `start`"
    return f"because the {named} says so"


# How names are written in sentences: between backticks, and always spelled the same.
#
# In some messages SQLMesh quotes each part of a model's name, in others no part.


_NAMED = 2
_QUOTED = re.compile(r"'?((?:\"[^\"`\s]+\"\.){1,3}\"[^\"`\s]+\")'?")


def unify_model_names_in_text(text: str, models: Collection[str]) -> str:
    """Returns `text` with the quoted names of these models written as everywhere else.

    A name that is no model of the report stays as it is: a table of the warehouse has no other
    name.
    """

    def respell_name(found: re.Match[str]) -> str:
        parts = found[1][1:-1].split('"."')
        for first in range(len(parts) - 1):
            name = ".".join(parts[first:])
            if name in models:
                return f"`{name}`"
        return found[0]

    return _QUOTED.sub(respell_name, text)


def list_names(names: Sequence[str], shown: int = _NAMED) -> str:
    """Returns "`a`", "`a` and `b`", or "`a`, `b` and 3 more"."""
    spans = [quote_name(name) for name in names[:shown]]
    more = len(names) - shown
    if more > 0:
        return f"{', '.join(spans)} and {format_number(more)} more"
    return " and ".join(spans) if len(spans) <= _NAMED else ", ".join(spans)


CheckResult = Literal["ok", "warn", "fail", "not_run"]

MARKS: dict[CheckResult, str] = {"ok": "✅", "warn": "⚠️", "fail": "❌", "not_run": "⬜"}


@dataclass(frozen=True)
class CheckWords:
    """The result of a check, and a few words about it."""

    result: CheckResult
    text: str

    def in_comment(self) -> str:
        """Returns the words after their mark; a check that did not run has no mark here."""
        return self.text if self.result == "not_run" else f"{MARKS[self.result]} {self.text}"


def describe_tests(check: TestsCheck) -> CheckWords:
    """Says how the unit tests ended, and how many of them also fail on the base branch."""
    amount = format_count(check.run, "unit test")
    if check.status == "passed":
        return CheckWords("ok", amount)
    if check.status == "failed":
        known = check.failed == check.failed_before
        before = "as on the base branch"
        if not known:
            before = f"{format_number(check.failed_before)} on the base branch, too"
        rest = f", {before}" if check.failed_before else ""
        text = f"{format_number(check.failed)} of {amount} failed{rest}"
        return CheckWords("warn" if known else "fail", text)
    return CheckWords(
        "not_run", "no unit tests" if check.status == "none" else "unit tests not run"
    )


def describe_lint(check: LintCheck) -> CheckWords:
    """Says how the linter ended."""
    return {
        "passed": CheckWords("ok", "lint"),
        "failed": CheckWords("fail", format_count(check.errors, "lint error")),
        "warnings": CheckWords("warn", format_count(check.warnings, "lint warning")),
        "off": CheckWords("not_run", "lint is off"),
        "not_run": CheckWords("not_run", "lint not run"),
    }[check.status]
