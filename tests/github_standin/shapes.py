"""Small pieces of GitHub's JSON that the stand-ins write themselves: users, comments, errors,
times.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import Any

from .wire import Answer, json_answer

DOCS = "https://docs.github.com/rest"
ACTIONS_BOT = "github-actions[bot]"
# The ids GitHub itself uses; other logins get a stable id from their name.
_IDS = {ACTIONS_BOT: 41898282, "dependabot[bot]": 49699333}


def now() -> str:
    """The time as GitHub writes it: UTC, whole seconds."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def stable_id(text: str) -> int:
    """A positive number below 2**31 that depends on `text` alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def node_id(kind: str, number: int) -> str:
    """A GraphQL node id; opaque to clients."""
    return f"{kind}_{number:012x}"


def is_bot(login: str) -> bool:
    """Whether the login belongs to an app."""
    return login.endswith("[bot]")


def user_kind(login: str) -> str:
    """`Bot` or `User`, as in the field `type`."""
    return "Bot" if is_bot(login) else "User"


def user_number(login: str) -> int:
    """The numeric id of a login."""
    return _IDS.get(login, stable_id(login))


def user(base_url: str, login: str, web_url: str | None = None) -> dict[str, Any]:
    """A simple user. `web_url` is where its page is, when that is another host than the API."""
    number = user_number(login)
    here = f"{base_url}/users/{login.replace('[', '%5B').replace(']', '%5D')}"
    page = f"apps/{login.removesuffix('[bot]')}" if is_bot(login) else login
    return {
        "login": login,
        "id": number,
        "node_id": node_id("U", number),
        "avatar_url": f"{base_url}/avatars/u/{number}",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{web_url or base_url}/{page}",
        "followers_url": f"{here}/followers",
        "following_url": f"{here}/following{{/other_user}}",
        "gists_url": f"{here}/gists{{/gist_id}}",
        "starred_url": f"{here}/starred{{/owner}}{{/repo}}",
        "subscriptions_url": f"{here}/subscriptions",
        "organizations_url": f"{here}/orgs",
        "repos_url": f"{here}/repos",
        "events_url": f"{here}/events{{/privacy}}",
        "received_events_url": f"{here}/received_events",
        "type": user_kind(login),
        "site_admin": False,
    }


def reactions(url: str, counts: dict[str, int] | None = None) -> dict[str, Any]:
    """The rollup of reactions below a comment or an issue."""
    names = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    found = {name: (counts or {}).get(name, 0) for name in names}
    return {"url": f"{url}/reactions", "total_count": sum(found.values()), **found}


def comment(
    base_url: str, repo: str, issue: int, number: int, *, login: str, body: str
) -> dict[str, Any]:
    """An issue comment; `repo` is owner/name."""
    moment = now()
    url = f"{base_url}/repos/{repo}/issues/comments/{number}"
    return {
        "url": url,
        "html_url": f"{base_url}/{repo}/pull/{issue}#issuecomment-{number}",
        "issue_url": f"{base_url}/repos/{repo}/issues/{issue}",
        "id": number,
        "node_id": node_id("IC", number),
        "user": user(base_url, login),
        "created_at": moment,
        "updated_at": moment,
        "author_association": "NONE",
        "body": body,
        "reactions": reactions(url),
        "performed_via_github_app": None,
    }


def error(status: int, message: str, **more: Any) -> Answer:
    """An error in GitHub's basic shape."""
    payload = {"message": message, **more, "documentation_url": DOCS, "status": str(status)}
    return json_answer(status, payload)


def not_found() -> Answer:
    """What GitHub says about things that do not exist or that you may not see."""
    return error(404, "Not Found")


def unsupported(what: str) -> Answer:
    """The stand-in refuses loudly where a wrong answer would pass for a right one."""
    return error(501, f"the GitHub stand-in does not serve this: {what}")


def page_links(url: str, page: int, per_page: int, total: int) -> str | None:
    """The `Link` header for a page (1-based), or None when one page holds everything."""
    last = max(1, -(-total // per_page))
    targets: dict[str, int] = {}
    if page > 1:
        targets |= {"prev": page - 1, "first": 1}
    if page < last:
        targets |= {"next": page + 1, "last": last}
    parts = [f'<{url}?per_page={per_page}&page={to}>; rel="{rel}"' for rel, to in targets.items()]
    return ", ".join(parts) or None


def paged(url: str, query: dict[str, str], items: list[Any]) -> Answer:
    """One page of `items` with its `Link` header; 30 per page unless asked, 100 at most."""
    per_page = max(1, min(100, int(query.get("per_page") or 30)))
    page = max(1, int(query.get("page") or 1))
    links = page_links(url, page, per_page, len(items))
    part = items[(page - 1) * per_page : page * per_page]
    return json_answer(200, part, {"Link": links} if links else None)
