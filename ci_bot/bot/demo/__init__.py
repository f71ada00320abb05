"""`ci-bot demo`: the life of one pull request on a laptop, on embedded Spark with real data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.demo.demo_story import run_demo

__all__ = ["run_demo"]

__getattr__ = open_on_demand(__name__, {"demo_story": ["run_demo"]})
