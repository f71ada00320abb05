"""Building the reviewed plan, and the evidence that it was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.worker.apply import apply_plan

__getattr__ = open_on_demand(
    __name__,
    {"apply_plan": []},
)
