"""Git on foreign ground: what the bot reads of a checkout, without running anything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.git.git_objects import GitBlob
    from ci_bot.bot.git.git_program import NO_GIT
    from ci_bot.bot.git.git_repository import FilesMissingInGit, GitFile, GitRepository

__getattr__ = open_on_demand(
    __name__,
    {
        "git_objects": ["GitBlob"],
        "git_program": ["NO_GIT"],
        "git_repository": ["GitFile", "GitRepository", "FilesMissingInGit"],
    },
)
