"""The plan's options that somebody has said, each with who did."""

from __future__ import annotations

from collections.abc import Sequence

from ci_bot.contracts.documents.plan_options import OptionName, PlanOption

_SHOWN = 8


def options_sentence(options: Sequence[PlanOption]) -> str | None:
    """ "`skip-backfill: true` (project's `cicd_bot.skip_pr_backfill`), ..."; None without any."""
    said = [option for option in options if option.source != "review"]
    if not said:
        return None
    shown = ", ".join(
        f"`{option.name}: {_plain(option.value)}` ({whose(option)})" for option in said[:_SHOWN]
    )
    return f"{shown} and {len(said) - _SHOWN:,} more" if len(said) > _SHOWN else shown


def whose(option: PlanOption) -> str:
    """Who said it, as a part of a sentence."""
    return f"project's `{_plain(option.key)}`" if option.key else "input"


def said(options: Sequence[PlanOption], name: OptionName) -> PlanOption | None:
    """The option of this name, None where nobody has said it."""
    return next((option for option in options if option.name == name), None)


def _plain(text: str) -> str:
    return text.replace("`", "'")
