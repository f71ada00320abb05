"""GitHub, in verbs of our own: the port, its adapter over PyGithub, and the sticky posts.

`port` says what the rest of the bot may ask for; tests and fakes implement it. `client` is its one
implementation, on `transport`, the only module that uses PyGithub. All that can be decided without
a request to GitHub is pure: `failures`, `records`, `urls`.
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
        may_maintain_on_github,
        may_write_on_github,
        require_github,
    )
    from ci_bot.bot.github.records import read_file_of_github_artifact
    from ci_bot.bot.github.sticky_posts import (
        GitHubStickyComment,
        MarkedComment,
        PublishedComment,
        publish_drift_issue_on_github,
    )
    from ci_bot.bot.github.transport import make_github_client_time
    from ci_bot.bot.github.urls import (
        find_certificates_for_github,
        find_github_api_url,
        find_github_repository,
        find_github_token,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "records": ["read_file_of_github_artifact"],
        "client": ["GitHubClient"],
        "sticky_posts": [
            "publish_drift_issue_on_github",
            "MarkedComment",
            "PublishedComment",
            "GitHubStickyComment",
        ],
        "port": [
            "GitHub",
            "NotFound",
            "Permission",
            "PullCommit",
            "PullRequest",
            "PullState",
            "Reaction",
            "may_maintain_on_github",
            "may_write_on_github",
            "require_github",
        ],
        "urls": [
            "find_github_api_url",
            "find_github_repository",
            "find_github_token",
            "find_certificates_for_github",
        ],
        "transport": ["make_github_client_time"],
    },
)
