"""GitHub, in verbs of ours: the port, its adapter over PyGithub, and the sticky posts.

`port` says what the rest of the bot may ask for; tests and fakes implement it. `client` is its one
implementation, on `transport`, the only module that touches PyGithub. Everything that can be
decided without asking GitHub is pure: `failures`, `records`, `urls`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.github.client import GitHubClient
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
    from ci_bot.bot.github.records import read_member
    from ci_bot.bot.github.sticky_posts import (
        MarkedComment,
        PublishedComment,
        StickyComment,
        publish_drift_issue,
    )
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
        "records": ["read_member"],
        "client": ["GitHubClient"],
        "sticky_posts": [
            "publish_drift_issue",
            "MarkedComment",
            "PublishedComment",
            "StickyComment",
        ],
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
        "transport": ["make_client_time"],
    },
)
