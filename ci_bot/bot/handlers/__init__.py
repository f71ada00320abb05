"""One handler for each activity of a pull request: review, apply, cleanup, and related ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.handlers.run_action import CREDENTIALS, run_action_in_workflow

__getattr__ = open_on_demand(__name__, {"run_action": ["CREDENTIALS", "run_action_in_workflow"]})
