"""PyGithub, set up for tests."""

from __future__ import annotations

from typing import Any

from github import Auth, Github


def connect_to(url: str, token: str, *, lazy: bool = False, **more: Any) -> Github:
    """PyGithub without its waiting between requests and, unless asked, without retries."""
    settings: dict[str, Any] = {"retry": None, "timeout": 5, "lazy": lazy}
    settings |= {"seconds_between_requests": None, "seconds_between_writes": None} | more
    return Github(auth=Auth.Token(token), base_url=url, **settings)
