"""`ci-bot init`: reads a repository without running anything of it, and writes its workflows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.setup.setup_command import SetupOptions, set_up_repository

__getattr__ = open_on_demand(
    __name__,
    {
        "setup_command": ["SetupOptions", "set_up_repository"],
    },
)
