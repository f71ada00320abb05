"""The command line, `ci-bot`: its commands, and what they do at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.cli.commands import main

__getattr__ = open_on_demand(__name__, {"commands": ["main"]})
