"""The repositories, pull requests, issues and comments inside event payloads, written by hand after
GitHub's examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import shapes

API = "https://api.github.com"
WEB = "https://github.com"
TIME = "2024-03-01T12:00:00Z"
LATER = "2024-03-02T12:00:00Z"

HEAD_SHA = "1111111111111111111111111111111111111111"
BASE_SHA = "2222222222222222222222222222222222222222"
MERGE_SHA = "3333333333333333333333333333333333333333"
BEFORE_SHA = "4444444444444444444444444444444444444444"

_PLAIN = """
    teams hooks events assignees{/user} branches{/branch} tags blobs{/sha} git_tags{/sha}
    git_refs{/sha} trees{/sha} statuses{/sha} languages stargazers contributors subscribers
    subscription commits{/sha} git_commits{/sha} comments{/number} issue_comment{/number}
    issue_events{/number} contents{+path} compare{base...head} merges archive{archive_format}{/ref}
    downloads issues{/number} pulls{/number} milestones{/number}
    notifications{?since,all,participating} labels{/name} releases{/id} deployments keys{/key_id}
    collaborators{/collaborator} forks
"""
# Where the last part of the address is not the field's name.
_BELOW = {
    "blobs": "git/blobs",
    "git_tags": "git/tags",
    "git_refs": "git/refs",
    "trees": "git/trees",
    "git_commits": "git/commits",
    "issue_comment": "issues/comments",
    "issue_events": "issues/events",
    "contents": "contents/",
    "compare": "compare/",
    "archive": "",
}


@dataclass(frozen=True)
class PullFacts:
    """What the factories need to know about a pull request.

    `head_repo` is owner/name, None for a deleted fork. `private` is about the base repository.
    """

    repo: str = "acme/warehouse"
    number: int = 7
    head_repo: str | None = "acme/warehouse"
    head_ref: str = "feature"
    base_ref: str = "main"
    head_sha: str = HEAD_SHA
    base_sha: str = BASE_SHA
    merge_sha: str | None = MERGE_SHA
    author: str = "author"
    title: str = "Change the models"
    body: str | None = None
    state: str = "open"
    merged: bool = False
    merged_by: str | None = None
    draft: bool = False
    mergeable: bool | None = None
    mergeable_state: str = "unknown"
    private: bool = False
    comments: int = 0

    @classmethod
    def from_api(cls, found: Mapping[str, Any]) -> PullFacts:
        """The facts in a pull request as the API returns it."""
        head, base = found["head"], found["base"]
        return cls(
            repo=base["repo"]["full_name"],
            number=found["number"],
            head_repo=head["repo"]["full_name"] if head["repo"] else None,
            head_ref=head["ref"],
            base_ref=base["ref"],
            head_sha=head["sha"],
            base_sha=base["sha"],
            merge_sha=found["merge_commit_sha"],
            author=found["user"]["login"],
            title=found["title"],
            body=found["body"],
            state=found["state"],
            merged=bool(found["merged"]),
            merged_by=found["merged_by"]["login"] if found["merged_by"] else None,
            draft=found["draft"],
            mergeable=found["mergeable"],
            mergeable_state=found["mergeable_state"],
            private=base["repo"]["private"],
            comments=found["comments"],
        )


def person(login: str) -> dict[str, Any]:
    """A user, bot or organization owner."""
    return shapes.user(API, login, WEB)


def repo_lite(full_name: str, *, private: bool = False, fork: bool = False) -> dict[str, Any]:
    """The short form of a repository."""
    number, url = shapes.stable_id(full_name), f"{API}/repos/{full_name}"
    addresses = {}
    for part in _PLAIN.split():
        name, brace, template = part.partition("{")
        tail = _BELOW.get(name, name)
        addresses[f"{name}_url"] = f"{url}/{tail}{brace}{template}"
    addresses["compare_url"] = f"{url}/compare/{{base}}...{{head}}"
    addresses["statuses_url"] = f"{url}/statuses/{{sha}}"
    return {
        "id": number,
        "node_id": shapes.node_id("R", number),
        "name": full_name.split("/")[1],
        "full_name": full_name,
        "private": private,
        "owner": person(full_name.split("/", maxsplit=1)[0]),
        "html_url": f"{WEB}/{full_name}",
        "description": None,
        "fork": fork,
        "url": url,
        **addresses,
    }


def repository(full_name: str, *, private: bool = False, fork: bool = False) -> dict[str, Any]:
    """The full form of a repository."""
    host = WEB.removeprefix("https://")
    return {
        **repo_lite(full_name, private=private, fork=fork),
        "created_at": TIME,
        "updated_at": TIME,
        "pushed_at": TIME,
        "git_url": f"git://{host}/{full_name}.git",
        "ssh_url": f"git@{host}:{full_name}.git",
        "clone_url": f"{WEB}/{full_name}.git",
        "svn_url": f"{WEB}/{full_name}",
        "homepage": None,
        "size": 12,
        "language": "Python",
        **dict.fromkeys(
            ("stargazers_count", "watchers_count", "watchers", "forks_count", "forks"), 0
        ),
        **dict.fromkeys(("open_issues_count", "open_issues"), 1),
        **dict.fromkeys(("has_issues", "has_projects", "has_downloads", "has_wiki"), True),
        **dict.fromkeys(("has_pages", "has_discussions", "archived", "disabled"), False),
        **dict.fromkeys(("is_template", "web_commit_signoff_required"), False),
        "mirror_url": None,
        "license": None,
        "allow_forking": True,
        "topics": [],
        "visibility": "private" if private else "public",
        "default_branch": "main",
        "custom_properties": {},
    }


def pull(facts: PullFacts) -> dict[str, Any]:
    """The pull request itself."""
    url, page = f"{API}/repos/{facts.repo}", f"{WEB}/{facts.repo}/pull/{facts.number}"
    number = shapes.stable_id(f"{facts.repo}#{facts.number}")
    closed = LATER if facts.state == "closed" else None
    links = {
        "self": f"{url}/pulls/{facts.number}",
        "html": page,
        "issue": f"{url}/issues/{facts.number}",
        "comments": f"{url}/issues/{facts.number}/comments",
        "review_comments": f"{url}/pulls/{facts.number}/comments",
        "review_comment": f"{url}/pulls/comments{{/number}}",
        "commits": f"{url}/pulls/{facts.number}/commits",
        "statuses": f"{url}/statuses/{facts.head_sha}",
    }
    return {
        "url": links["self"],
        "id": number,
        "node_id": shapes.node_id("PR", number),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        **{f"{name}_url": links[name] for name in ("issue", "comments", "commits", "statuses")},
        **{f"{name}_url": links[name] for name in ("review_comments", "review_comment")},
        "number": facts.number,
        "state": facts.state,
        "locked": False,
        "title": facts.title,
        "user": person(facts.author),
        "body": facts.body,
        "created_at": TIME,
        "updated_at": closed or TIME,
        "closed_at": closed,
        "merged_at": closed if facts.merged else None,
        "merge_commit_sha": facts.merge_sha,
        **dict.fromkeys(("assignee", "milestone", "auto_merge", "active_lock_reason"), None),
        **{name: [] for name in ("assignees", "requested_reviewers", "requested_teams", "labels")},
        "head": _side(facts, facts.head_repo, facts.head_ref, facts.head_sha),
        "base": _side(facts, facts.repo, facts.base_ref, facts.base_sha),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": _association(facts.repo, facts.author),
        "draft": facts.draft,
        "merged": facts.merged,
        "mergeable": facts.mergeable,
        "rebaseable": facts.mergeable,
        "mergeable_state": facts.mergeable_state,
        "merged_by": person(facts.merged_by or facts.author) if facts.merged else None,
        "comments": facts.comments,
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": 1,
        "additions": 1,
        "deletions": 1,
        "changed_files": 1,
    }


def _side(facts: PullFacts, repo: str | None, ref: str, sha: str) -> dict[str, Any]:
    # Of a deleted fork the user is still known, the repository is null.
    owner = repo.split("/")[0] if repo else facts.author
    fork = repo != facts.repo
    return {
        "label": f"{owner}:{ref}" if repo else f"unknown repository:{ref}",
        "ref": ref,
        "sha": sha,
        "user": person(owner),
        "repo": repository(repo, private=facts.private and not fork, fork=fork) if repo else None,
    }


def _association(repo: str, login: str) -> str:
    return "OWNER" if repo.split("/", maxsplit=1)[0] == login else "CONTRIBUTOR"


def issue(facts: PullFacts, *, is_pull: bool) -> dict[str, Any]:
    """The issue a comment stands under; `is_pull` adds the link that says it is a pull request."""
    url = f"{API}/repos/{facts.repo}/issues/{facts.number}"
    page = f"{WEB}/{facts.repo}/{'pull' if is_pull else 'issues'}/{facts.number}"
    number = shapes.stable_id(url)
    closed = LATER if facts.state == "closed" else None
    made: dict[str, Any] = {
        "url": url,
        "repository_url": f"{API}/repos/{facts.repo}",
        "labels_url": f"{url}/labels{{/name}}",
        **{f"{name}_url": f"{url}/{name}" for name in ("comments", "events", "timeline")},
        "html_url": page,
        "id": number,
        "node_id": shapes.node_id("I", number),
        "number": facts.number,
        "title": facts.title,
        "user": person(facts.author),
        **{name: [] for name in ("labels", "assignees")},
        "state": facts.state,
        "locked": False,
        **dict.fromkeys(("assignee", "milestone", "active_lock_reason", "state_reason"), None),
        "comments": facts.comments,
        "created_at": TIME,
        "updated_at": TIME,
        "closed_at": closed,
        "author_association": _association(facts.repo, facts.author),
        "body": facts.body,
        "reactions": shapes.reactions(url),
        "performed_via_github_app": None,
    }
    if is_pull:
        made["draft"] = facts.draft
        made["pull_request"] = {
            "url": f"{API}/repos/{facts.repo}/pulls/{facts.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": closed if facts.merged else None,
        }
    return made
