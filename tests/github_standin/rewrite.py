"""Make emulate's JSON look like GitHub's: bots, times, roles, shas, counters.

Pure: takes a JSON value and what the front knows, returns the value the client gets.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from . import shapes
from .state import PullState, RepoState, World

_REPO = re.compile(r"/repos/([^/]+/[^/]+?)(?:/|$)")
_ONLY_SINGLE = frozenset(
    {
        "merged",
        "mergeable",
        "rebaseable",
        "mergeable_state",
        "merged_by",
        "comments",
        "review_comments",
        "maintainer_can_modify",
        "commits",
        "additions",
        "deletions",
        "changed_files",
    }
)
# What a pull request and its issue have in common.
_SHARED = (
    *("id", "node_id", "number", "title", "user", "labels", "state", "locked", "assignee"),
    *("assignees", "milestone", "comments", "created_at", "updated_at", "closed_at"),
    *("author_association", "body", "html_url", "draft"),
)
_MILLISECONDS = re.compile(r"\.\d{3}Z$")


def rewrite(world: World, value: Any) -> Any:
    """The value with every user, repository, pull request, issue and comment in it corrected."""
    if isinstance(value, list):
        return [_listed(rewrite(world, item)) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _time(name, rewrite(world, item)) for name, item in value.items()}
    if "login" in changed and "followers_url" in changed:
        changed |= shapes.user(world.url, changed["login"])
    if "full_name" in changed and "forks_url" in changed:
        _repository(changed)
    if "user" in changed and "author_association" in changed:
        _association(world, changed)
    if "issue_url" in changed and "reactions" in changed:
        _comment(world, changed)
    if "mergeable_state" in changed and "head" in changed:
        _pull(world, changed)
    return changed


def _listed(item: Any) -> Any:
    """Lists hold pull requests in a short form, without what GitHub computes for a single one."""
    if isinstance(item, dict) and "mergeable_state" in item:
        return {name: value for name, value in item.items() if name not in _ONLY_SINGLE}
    return item


def _time(name: str, value: Any) -> Any:
    if isinstance(value, str) and (name.endswith("_at") or name == "date"):
        return _MILLISECONDS.sub("Z", value)
    return value


def _state(world: World, url: str) -> RepoState | None:
    found = _REPO.search(url)
    return world.repos.get(found[1]) if found else None


def _repository(repo: dict[str, Any]) -> None:
    # emulate knows no push time of repositories filled through the git API, nor the two counters
    # that the single-repository form has.
    repo["pushed_at"] = repo.get("pushed_at") or repo.get("updated_at")
    repo.setdefault("network_count", repo.get("forks_count", 0))
    repo.setdefault("subscribers_count", repo.get("watchers_count", 0))


def _association(world: World, value: dict[str, Any]) -> None:
    repo = _state(world, value.get("url") or "")
    if repo is not None and value["user"] is not None:
        value["author_association"] = repo.association(value["user"]["login"])


def _comment(world: World, comment: dict[str, Any]) -> None:
    counts = Counter(reaction["content"] for reaction in world.reactions.get(comment["id"], []))
    comment["reactions"] = shapes.reactions(comment["url"], dict(counts))
    reason = world.minimized.get(comment["node_id"])
    comment["minimized"] = {"reason": reason.lower()} if reason else None
    repo = _state(world, comment["url"])
    if repo is not None and int(comment["issue_url"].rsplit("/", 1)[-1]) in repo.pulls:
        comment["html_url"] = comment["html_url"].replace("/issues/", "/pull/")


def _pull(world: World, pull: dict[str, Any]) -> None:
    repo = _state(world, pull["url"])
    if repo is None:
        return
    facts = repo.pull(pull["number"])
    for side, sha in (("head", facts.head_sha), ("base", facts.base_sha)):
        if sha is not None:
            pull[side]["sha"] = sha
    pull["statuses_url"] = f"{pull['base']['repo']['url']}/statuses/{pull['head']['sha']}"
    pull["_links"]["statuses"]["href"] = pull["statuses_url"]
    if facts.merge_commit_sha is not None:
        pull["merge_commit_sha"] = facts.merge_commit_sha
    if facts.files is not None:
        pull["changed_files"] = len(facts.files)
        pull["additions"] = sum(file["additions"] for file in facts.files)
        pull["deletions"] = sum(file["deletions"] for file in facts.files)
    pull["mergeable"], pull["mergeable_state"] = _mergeable(facts, pull)
    pull["rebaseable"] = pull["mergeable"]


def _mergeable(facts: PullState, pull: dict[str, Any]) -> tuple[bool | None, str]:
    if pull.get("merged"):
        return None, "unknown"
    if facts.computing_reads:
        return None, "unknown"
    if pull.get("draft") and facts.mergeable_state == "clean":
        return facts.mergeable, "draft"
    return facts.mergeable, facts.mergeable_state


def issue_of_pull(pull: dict[str, Any]) -> dict[str, Any]:
    """The issue that every pull request also is, which emulate does not serve."""
    issue = f"{pull['base']['repo']['url']}/issues/{pull['number']}"
    return {
        **{name: pull[name] for name in _SHARED},
        "url": issue,
        "repository_url": pull["base"]["repo"]["url"],
        "labels_url": f"{issue}/labels{{/name}}",
        "comments_url": f"{issue}/comments",
        "events_url": f"{issue}/events",
        "timeline_url": f"{issue}/timeline",
        "active_lock_reason": None,
        "state_reason": None,
        "closed_by": pull.get("merged_by"),
        "performed_via_github_app": None,
        "reactions": shapes.reactions(issue),
        "pull_request": {
            "url": pull["url"],
            "html_url": pull["html_url"],
            "diff_url": pull["diff_url"],
            "patch_url": pull["patch_url"],
            "merged_at": pull["merged_at"],
        },
    }
