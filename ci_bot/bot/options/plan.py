"""The options of a plan, and of the limits that it is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ci_bot.bot import values
from ci_bot.bot.options.parameters import Function, Value, Word, option


def plan_options(command: Function) -> Function:
    """The options of a plan, the same for every command that makes one; see `with_flags`."""
    for one in reversed(_PLAN):
        command = one(command)
    return command


def limit_options(command: Function) -> Function:
    """What a team may set for its reviews; without an option its policy says it."""
    for one in reversed(_LIMITS):
        command = one(command)
    return command


def budget_options(command: Function) -> Function:
    """The limits that are about cost alone."""
    for one in reversed((_MAX_HOURS, _PRICE)):
        command = one(command)
    return command


def _models(name: str, field: str, metavar: str, what: str) -> Callable[[Function], Function]:
    return option(
        f"--{name}",
        field,
        type=Value(values.text),
        multiple=True,
        metavar=metavar,
        help=f"{what} Repeatable.",
    )


def _switch(name: str, what: str) -> Callable[[Function], Function]:
    """Neither of the two means that the project decides."""
    return option(f"--{name}/--no-{name}", default=None, help=what)


FORWARD_ONLY = _switch(
    "forward-only", "Plan all changes as forward-only: history keeps its old values."
)
ALLOW_DESTRUCTIVE = _models(
    "allow-destructive",
    "allow_destructive",
    "MODEL",
    "Let this forward-only model drop or retype columns.",
)
_PLAN = (
    _models(
        "select-model",
        "select_models",
        "SELECTION",
        "Plan only these models, in SQLMesh's syntax for selections: `+shop.orders`, `tag:daily`.",
    ),
    _models("restate-model", "restate_models", "MODEL", "Rebuild this model in the environment."),
    option(
        "--start",
        type=Value(values.text),
        metavar="DATE",
        help="First date to build; the project's otherwise.",
    ),
    option(
        "--end",
        type=Value(values.text),
        metavar="DATE",
        help="Last date to build; at most, and otherwise, as far as prod is built.",
    ),
    option(
        "--min-intervals",
        type=Value(values.intervals, "integer"),
        help="Smallest number of intervals that each changed model gets.",
    ),
    option(
        "--preview-start",
        type=Value(values.text),
        metavar="DATE",
        help="First date for previews of forward-only models.",
    ),
    option(
        "--preview-min-intervals",
        type=Value(values.intervals, "integer"),
        help="Smallest number of intervals in a preview of a forward-only model.",
    ),
    _switch("skip-backfill", "Build no data: tables are made, and stay empty."),
    _switch("include-unmodified", "Make views of unmodified models, too."),
    FORWARD_ONLY,
    ALLOW_DESTRUCTIVE,
)
_PRICE = option(
    "--executor-hour-price",
    type=Value(values.price),
    metavar="PRICE",
    help="Price of one executor-hour with its currency, such as `0.42 EUR`, to show a cost.",
)
_MAX_HOURS = option(
    "--max-executor-hours",
    type=Value(values.number(), "number"),
    help="A higher estimate than this ends it, before anything is built.",
)
_LIMITS = (
    option(
        "--fail-on",
        type=Word("blocker", "high", "never"),
        help="From which finding on to exit with 1: a blocker (No-Go), high (Review, too), or "
        "never; the policy's, else blocker.",
    ),
    option(
        "--max-intervals",
        type=Value(values.whole_number(0), "integer"),
        help="More intervals than this, in the environment or in prod, make it at least Review.",
    ),
    option(
        "--max-executor-hours",
        type=Value(values.number(), "number"),
        help="A higher estimate than this, for the environment or for prod, makes it No-Go.",
    ),
    _PRICE,
)
_FLAGS = (
    "forward_only",
    "include_unmodified",
    "skip_backfill",
    "min_intervals",
    "preview_start",
    "preview_min_intervals",
)
_LISTS = ("select_models", "restate_models", "allow_destructive")


def with_flags(options: dict[str, Any]) -> dict[str, Any]:
    """A command's options with those of its plan as `flags`; `start` and `end` stay as they are."""
    from ci_bot.contracts.documents.plan_options import GivenFlags

    rest = {name: value for name, value in options.items() if name not in (*_FLAGS, *_LISTS)}
    asked = {name: options[name] for name in _FLAGS}
    asked |= {name: sorted(options[name]) for name in _LISTS}
    return {**rest, "flags": GivenFlags(**asked)}
