"""What a value may be that a person typed: an option of the command line, an input of the action.

Each function takes the text and gives the value, or raises ValueError with what would be right, to
follow the name of the option: "must be a whole number". Pure, and fast to import.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from ci_bot.protocol.environment import is_prefix
from ci_bot.protocol.limits import MOST_INTERVALS

if TYPE_CHECKING:
    from ci_bot.protocol.cost import Price

_EMPTY = "must not be empty"

Parse = Callable[[str], Any]
# From which finding on a review fails the check.
FailOn = Literal["blocker", "high", "never"]
# Whether a terminal gets colours.
Color = Literal["auto", "always", "never"]

LONGEST_TEXT = 1_000
# The longest that GitHub lets a job run on a runner of one's own.
MOST_MINUTES = 35 * 24 * 60
_DIGITS = 18
_NUMBER = re.compile(r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?")


def describe_wrong_value(label: str, value: str, error: ValueError) -> str:
    """The one sentence about a wrong value, without a full stop.

    Args:
        label: What the value was given for: "option `--plan-id`".
    """
    # Every event imports this module, and few need a sentence about a wrong value.
    from ci_bot.redaction import quote_value

    return f"{label} {error} (got {quote_value(value)})"


def parse_utf8(value: str) -> str:
    """Any text that the system could decode."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be UTF-8") from None
    return value


def parse_text(value: str) -> str:
    """One line, with something on it."""
    stripped = parse_utf8(value).strip()
    if not stripped:
        raise ValueError(_EMPTY)
    if not stripped.isprintable():
        raise ValueError("must be one line of printable characters")
    if len(stripped) > LONGEST_TEXT:
        raise ValueError(f"must be at most {LONGEST_TEXT:,} characters long")
    return stripped


def parse_path(value: str) -> str:
    """A path; whether it leads anywhere is asked later. Blanks at its ends belong to it."""
    if not parse_utf8(value).strip():
        raise ValueError(_EMPTY)
    return value


def parse_lines(value: str) -> tuple[str, ...]:
    """One entry a line."""
    return tuple(parse_text(line) for line in parse_utf8(value).splitlines() if line.strip())


def parse_names(value: str) -> tuple[str, ...]:
    """Entries apart by white space or commas."""
    return tuple(parse_text(part) for part in re.split(r"[\s,]+", parse_utf8(value)) if part)


def parse_flag(value: str) -> bool:
    if value.strip() not in ("true", "false"):
        raise ValueError("must be `true` or `false`")
    return value.strip() == "true"


def make_whole_number_parser(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """A whole number within bounds."""

    def parse_whole_number(value: str) -> int:
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise ValueError(f"must be a whole number from {minimum} up")
        if int(digits) < minimum:
            raise ValueError(f"must be at least {minimum}")
        if maximum is not None and int(digits) > maximum:
            raise ValueError(f"must be at most {maximum:,}")
        return int(digits)

    return parse_whole_number


def make_number_parser(maximum: float | None = None) -> Callable[[str], float]:
    """A number from 0 up."""
    range_ = "from 0 up" if maximum is None else f"from 0 to {maximum:g}"

    def parse_number(value: str) -> float:
        if not _NUMBER.fullmatch(value.strip()):
            raise ValueError(f"must be a number {range_}")
        found = float(value)
        if maximum is not None and found > maximum:
            raise ValueError(f"must be a number {range_}")
        return found

    return parse_number


def parse_price(value: str) -> Price:
    """An amount with its currency: `0.42 EUR`."""
    # The contracts bring pydantic, for which an event that needs nothing does not wait.
    from ci_bot.protocol.cost import Price

    return Price.parse_price(value)


def make_word_parser(*words: str) -> Callable[[str], str]:
    """One of some words."""

    def parse_word(value: str) -> str:
        if value.strip() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return value.strip()

    return parse_word


def make_pattern_parser(pattern: str, what: str) -> Callable[[str], str]:
    """A text of one form; `what` says which."""

    def parse_matching(value: str) -> str:
        if not re.fullmatch(pattern, value.strip()):
            raise ValueError(what)
        return value.strip()

    return parse_matching


plan_id = make_pattern_parser(
    r"[0-9a-fA-F]{8,64}", "must be 8 to 64 hexadecimal digits of a plan id"
)
# What a review has instead of prod's plan id where a merge changes nothing.
NO_CHANGES = "none"
prod_plan_id = make_pattern_parser(
    rf"[0-9a-fA-F]{{8,64}}|{NO_CHANGES}",
    f"must be 8 to 64 hexadecimal digits of prod's plan id, or `{NO_CHANGES}`",
)


def environment_prefix(value: str) -> str:
    """What environments of pull requests are called, before `_<number>`."""
    if not is_prefix(value.strip()):
        raise ValueError("must be lower case letters, digits and `_`, a letter first")
    return value.strip()


intervals = make_whole_number_parser(0, MOST_INTERVALS)
minutes = make_whole_number_parser(1, MOST_MINUTES)


# A release of an action, as `uses:` names it.
action_release = make_pattern_parser(
    r"[\w.-]+/[\w.-]+@[0-9a-f]{40}(\s*#\s*v[\w.+-]+)?",
    "must be OWNER/NAME@COMMIT, with the 40 digits of the commit",
)
