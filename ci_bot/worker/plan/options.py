"""Which options a plan is made with, and who said each. Pure.

The run's inputs come first. Then comes what the project writes under `cicd_bot:` for SQLMesh's own
bot, so that a team can move over without a change; that bot's defaults do not hold here. Then comes
the project's `plan:`. A review and an apply of its plan both come through here, once each.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeVar

from ci_bot.contracts.documents.plan_identity import PlanFlags
from ci_bot.contracts.documents.plan_options import (
    SHOWN,
    GivenFlags,
    OptionName,
    PlanOption,
    Source,
)
from ci_bot.contracts.intervals import MOST_INTERVALS
from ci_bot.errors import BadInput
from ci_bot.secrets.cutting import shortened
from ci_bot.worker.project.plan_settings import BOT, PlanSettings

Value = TypeVar("Value")


@dataclass(frozen=True)
class PlanOptions:
    """What a plan is made with.

    Attributes:
        start, end: as they were said; null where nobody did.
        categorizer: how SQLMesh categorizes changes by itself; null as `plan:` says.
        said: every option that somebody has said.
    """

    flags: PlanFlags
    start: str | None = None
    end: str | None = None
    categorizer: Any | None = None
    said: tuple[PlanOption, ...] = ()


def resolve(
    given: GivenFlags,
    settings: PlanSettings,
    *,
    start: str | None = None,
    end: str | None = None,
    pinned: bool = False,
    head_branch: str | None = None,
) -> PlanOptions:
    """The options that hold.

    Args:
        given: what the run was given.
        settings: what the project's configuration says.
        start, end: what the run was given, too.
        pinned: these dates are a review's, which the same plan is made with again.
        head_branch: the branch that is to be merged, without `refs/heads/`; None: not known.

    Raises:
        BadInput: the project writes a number that cannot be meant.
    """
    options = _Options(settings)
    dates = _Options(settings, given="review") if pinned else options
    bot = settings.bot
    flags = PlanFlags(
        forward_only=options.of(
            "forward-only",
            given.forward_only,
            (f"{BOT}.forward_only_branch_suffix", _by_branch(bot, head_branch)),
            ("plan.forward_only", settings.forward_only or None),
        )
        or False,
        include_unmodified=options.of(
            "include-unmodified",
            given.include_unmodified,
            options.written("pr_include_unmodified"),
            ("plan.include_unmodified", settings.include_unmodified or None),
        )
        or False,
        skip_backfill=options.of(
            "skip-backfill", given.skip_backfill, options.written("skip_pr_backfill")
        )
        or False,
        min_intervals=options.of(
            "min-intervals", given.min_intervals, options.count("pr_min_intervals")
        )
        or 0,
        preview_start=options.of(
            "preview-start", given.preview_start, options.date("default_pr_preview_start")
        ),
        preview_min_intervals=options.of(
            "preview-min-intervals",
            given.preview_min_intervals,
            options.count("pr_preview_min_intervals"),
        )
        or 0,
        select_models=options.of("select-model", given.select_models or None) or [],
        restate_models=options.of("restate-model", given.restate_models or None) or [],
        allow_destructive=options.of("allow-destructive", given.allow_destructive or None) or [],
    )
    return PlanOptions(
        flags=flags,
        start=dates.of("start", start, options.date("default_pr_start")),
        end=dates.of("end", end),
        categorizer=options.of(
            "auto-categorize-changes", None, options.written("auto_categorize_changes")
        ),
        said=tuple(options.said if dates is options else [*options.said, *dates.said]),
    )


class _Options:
    """Chooses who says each option, and notes it."""

    def __init__(self, settings: PlanSettings, given: Source = "input") -> None:
        self._bot = settings.bot
        self._given = given
        self.said: list[PlanOption] = []

    def written(self, key: str) -> tuple[str, Any | None]:
        """What the project writes under `cicd_bot:`."""
        return f"{BOT}.{key}", self._bot.get(key)

    def date(self, key: str) -> tuple[str, str | None]:
        """The same as a text: YAML makes dates of its own of what looks like one."""
        name, value = self.written(key)
        if isinstance(value, date | datetime):
            return name, value.isoformat()
        return name, None if value is None else str(value)

    def count(self, key: str) -> tuple[str, int | None]:
        """The same as a number of intervals.

        Raises:
            BadInput: it is none.
        """
        name, value = self.written(key)
        if value is not None and not 0 <= value <= MOST_INTERVALS:
            raise BadInput(
                f"The project's `{name}` is {value}, which is no number of intervals from 0 to "
                f"{MOST_INTERVALS:,}.",
                hint="Correct it in the configuration.",
                reason_code="bad_config",
            )
        return name, value

    def of(
        self, name: OptionName, given: Value | None, *others: tuple[str, Value | None]
    ) -> Value | None:
        """The first value that somebody has said; None where nobody did."""
        for key, value in ((None, given), *others):
            if value is not None:
                # Each model that is named is an option of its own, as on a command line.
                for item in value if isinstance(value, list) else [value]:
                    self._note(name, item, key)
                return value
        return None

    def _note(self, name: OptionName, value: Any, key: str | None) -> None:
        source: Source = self._given if key is None else "project"
        self.said.append(PlanOption(name=name, value=_shown(value), source=source, key=key))


def _by_branch(bot: Any, head_branch: str | None) -> bool | None:
    """Whether the branch's name makes the plan forward-only; None where it says nothing."""
    suffix = bot.get("forward_only_branch_suffix")
    # With an empty one SQLMesh's bot takes its default; every name would end with it.
    return True if suffix and head_branch and head_branch.endswith(suffix) else None


def name_of(name: OptionName, said: tuple[PlanOption, ...]) -> str:
    """What a message calls an option: the project's key where that has said it."""
    key = next((option.key for option in said if option.name == name), None)
    return key or name


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "dict"):  # a part of SQLMesh's configuration
        parts = {key: getattr(item, "value", item) for key, item in value.dict().items()}
        return shortened(", ".join(f"{key}: {item}" for key, item in parts.items()), SHOWN)
    return shortened(str(value), SHOWN)
