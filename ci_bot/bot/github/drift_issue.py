"""The one issue that says how prod has drifted: found, written, closed and opened again.

It is found by its label, our mark in its first line, and its author, which is this token: anybody
can write the mark, and whoever takes the label off gets a new issue.

One request for the list, one for who we are if an issue there may be ours, and one write.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from ci_bot.bot.github.port import GitHub, RepositoryIssue

DRIFT_LABEL = "sqlmesh-drift"

IssueChange = Literal["created", "edited", "closed", "unchanged", "none"]


def publish_drift_issue(
    github: GitHub, *, key: str, title: str, body: str, clean: bool
) -> tuple[IssueChange, RepositoryIssue | None]:
    """Writes what a run found into the issue; if nothing differs, closes one that is open.

    Args:
        key: Tells the issues of several projects in one repository apart.
        clean: Nothing differs, so no issue is opened for it.

    Returns:
        What was done, and the issue; none if nothing differs and there is none.

    Raises:
        BotError: GitHub refuses it, or does not answer.
    """
    mark = f"<!-- sqlmesh-drift {hashlib.sha256(key.encode()).hexdigest()[:16]} -->"
    text = f"{mark}\n{body}"
    known = _find_issue(github, mark)
    if known is None:
        if clean:
            return "none", None
        return "created", github.create_issue(title, text, labels=[DRIFT_LABEL])
    if known.is_open is not clean and known.body.replace("\r\n", "\n").strip() == text.strip():
        return "unchanged", known
    if clean and not known.is_open:
        return "unchanged", known
    written = github.update_issue(known.number, title=title, body=text, is_open=not clean)
    return "closed" if clean else "edited", written


def _find_issue(github: GitHub, mark: str) -> RepositoryIssue | None:
    """Ours, an open one first; of several the oldest."""
    marked = [
        issue
        for issue in github.list_issues(DRIFT_LABEL)
        if issue.body.replace("\r\n", "\n").partition("\n")[0] == mark
    ]
    if not marked:
        return None
    login = github.my_login().lower()
    ours = [issue for issue in marked if issue.author.lower() == login]
    return min(ours, key=lambda issue: (not issue.is_open, issue.number), default=None)
