"""GitHub, in verbs of ours: the port, its adapter over PyGithub, and the sticky comment.

`port` says what the rest of the bot may ask for; tests and fakes implement it. `client` is its one
implementation, on `transport`, the only module that touches PyGithub. Everything that can be
decided without asking GitHub is pure: `retry`, `failures`, `answers`, `sticky_rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.github.artifact import read_member
    from ci_bot.bot.github.client import GitHubClient
    from ci_bot.bot.github.drift_issue import publish_drift_issue
    from ci_bot.bot.github.port import (
        GitHub,
        NotFound,
        Permission,
        PullCommit,
        PullRequest,
        PullState,
        Reaction,
        may_maintain,
        may_write,
        require_github,
    )
    from ci_bot.bot.github.sticky_comment import MarkedComment, PublishedComment, StickyComment
    from ci_bot.bot.github.transport import make_client_time
    from ci_bot.bot.github.urls import (
        find_api_url,
        find_repository,
        find_token,
        find_trusted_certificates,
    )

__all__ = [
    "GitHub",
    "GitHubClient",
    "MarkedComment",
    "NotFound",
    "Permission",
    "PublishedComment",
    "PullCommit",
    "PullRequest",
    "PullState",
    "Reaction",
    "StickyComment",
    "find_api_url",
    "find_repository",
    "find_token",
    "find_trusted_certificates",
    "make_client_time",
    "may_maintain",
    "may_write",
    "publish_drift_issue",
    "read_member",
    "require_github",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "artifact": ["read_member"],
        "client": ["GitHubClient"],
        "drift_issue": ["publish_drift_issue"],
        "port": [
            "GitHub",
            "NotFound",
            "Permission",
            "PullCommit",
            "PullRequest",
            "PullState",
            "Reaction",
            "may_maintain",
            "may_write",
            "require_github",
        ],
        "urls": ["find_api_url", "find_repository", "find_token", "find_trusted_certificates"],
        "sticky_comment": ["MarkedComment", "PublishedComment", "StickyComment"],
        "transport": ["make_client_time"],
    },
)
