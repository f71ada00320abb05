"""The bot's mouth towards the Actions runner: commands, masks, outputs and the step summary."""

from __future__ import annotations
