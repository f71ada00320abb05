"""Why the environment gets less history than prod, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.bot.comment.text import words
from ci_bot.bot.comment.text.options import said, whose
from ci_bot.contracts.documents.plan import ShortWindow, WindowCause
from ci_bot.contracts.documents.plan_options import PlanOption

_CAUSES: dict[WindowCause, str] = {
    "end": "because the input `end` says so",
    "forward_only_plan": "because the whole plan is forward-only",
    "virtual_environment_mode": "because `virtual_environment_mode` is not `full`",
}
# Tried: only `start` reaches every model. `preview-start` reaches previews of forward-only models,
# `min-intervals` all others.
_WIDER = "`start` widens it"
_MODELS_SHOWN = 3


def short_window(window: ShortWindow, environment: str, options: Sequence[PlanOption] = ()) -> str:
    """ "`pr_7` gets 2024-11-30 only, because forward-only `a` is in the plan; ..."

    Args:
        options: The plan's options, of which one may be the cause.
    """
    if window.start is None and window.end is not None:
        return f"`{environment}` ends with {words.last_day(window.end)}, {_CAUSES['end']}."
    span = words.window(window.start, window.end).replace("\u00a0", " ")
    text = f"`{environment}` gets {span} only, {_because(window, options)}"
    return f"{text}." if window.cause == "start" else f"{text}; {_WIDER}."


def _because(window: ShortWindow, options: Sequence[PlanOption]) -> str:
    if window.cause == "start":
        return _of_start(said(options, "start"))
    if window.cause == "min_intervals":
        option = said(options, "min-intervals")
        name = f"the {whose(option)}" if option and option.key else "`min-intervals`"
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


def _of_start(option: PlanOption | None) -> str:
    if option is not None and option.source == "review":
        return "because the reviewed plan begins there"
    named = whose(option) if option is not None and option.key else "input `start`"
    return f"because the {named} says so"
