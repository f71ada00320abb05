"""Whether a project and its surroundings are ready for the other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.doctor import examination
    from ci_bot.worker.doctor.spark_network import this_network

__all__ = ["examination", "this_network"]

__getattr__ = open_on_demand(__name__, {"examination": [], "spark_network": ["this_network"]})
