"""Whether a project and its surroundings are ready for the other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.doctor import examination
    from ci_bot.worker.doctor.spark_network import make_network_facts_for_doctor

__getattr__ = open_on_demand(
    __name__, {"examination": [], "spark_network": ["make_network_facts_for_doctor"]}
)
