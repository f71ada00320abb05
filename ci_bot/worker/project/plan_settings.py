"""What the configurations of a run's projects say about how plans are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_bot.worker import compat

BOT = "cicd_bot"
# The keys of `cicd_bot:` that reach a plan.
OF_A_PLAN = (
    "auto_categorize_changes",
    "default_pr_start",
    "default_pr_preview_start",
    "pr_min_intervals",
    "pr_preview_min_intervals",
    "skip_pr_backfill",
    "pr_include_unmodified",
    "forward_only_branch_suffix",
)


@dataclass(frozen=True)
class PlanSettings:
    """The settings of one configuration that change a plan.

    Attributes:
        forward_only, include_unmodified: of `plan:`.
        bot: what is written under `cicd_bot:`, which SQLMesh's own bot reads; never its defaults.
        notes: settings that are written and not read, a sentence each.
    """

    forward_only: bool = False
    include_unmodified: bool = False
    bot: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def plan_settings(configs: Mapping[Path, Any]) -> PlanSettings:
    """The settings that hold: of several projects the first one's, as everywhere in SQLMesh.

    Args:
        configs: the configurations by directory, in the order in which the projects were named.
    """
    (_, config), *others = configs.items()
    bot = compat.written_bot_settings(config)
    unread = {
        f"{BOT}.{key}": path.name
        for path, other in others
        for key, value in compat.written_bot_settings(other).items()
        if key in OF_A_PLAN and value != bot.get(key)
    }
    return PlanSettings(
        forward_only=config.plan.forward_only,
        include_unmodified=config.plan.include_unmodified,
        bot=bot,
        notes=tuple(
            f"`{key}` of the project {name} is not read: where several are planned together, the "
            "first one says how."
            for key, name in sorted(unread.items())
        ),
    )
