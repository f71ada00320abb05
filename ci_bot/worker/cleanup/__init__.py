"""Removing an environment, and the tables that nobody reads any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.cleanup import remove_environment, sweep

__getattr__ = open_on_demand(__name__, {"remove_environment": [], "sweep": []})
