"""Event payloads in the shape GitHub sends them, as the file that `GITHUB_EVENT_PATH` names.

Written by hand after GitHub's published examples, which have no fork, no comment on a pull request
and no merge. `test_events.py` validates each against GitHub's webhook schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import shapes
from .event_parts import (
    API,
    BEFORE_SHA,
    LATER,
    TIME,
    WEB,
    PullFacts,
    issue,
    person,
    pull,
    repo_lite,
)
from .event_parts import repository as _repository

__all__ = [
    "PULL_ACTIONS",
    "Event",
    "PullFacts",
    "closed",
    "from_deleted_fork",
    "from_dependabot",
    "from_fork",
    "issue_comment",
    "merged",
    "pull_request",
    "schedule",
    "workflow_dispatch",
    "workflow_run",
]

Event = dict[str, Any]

PULL_ACTIONS = (
    "opened",
    "synchronize",
    "reopened",
    "ready_for_review",
    "converted_to_draft",
    "closed",
    "edited",
    "labeled",
)


def pull_request(
    action: str = "opened",
    facts: PullFacts | None = None,
    *,
    sender: str | None = None,
    before: str = BEFORE_SHA,
) -> Event:
    """A `pull_request` event (also what `pull_request_target` gets).

    `closed` is a merge when `facts.merged` says so. `before` is the head before a `synchronize`.
    """
    facts = facts or PullFacts()
    if action not in PULL_ACTIONS:
        raise ValueError(f"no factory for pull_request {action}")
    if action == "closed":
        facts = replace(facts, state="closed")
    event: Event = {
        "action": action,
        "number": facts.number,
        "pull_request": pull(facts),
        "repository": _repository(facts.repo, private=facts.private),
        "sender": person(sender or facts.author),
    }
    if action == "synchronize":
        event |= {"before": before, "after": facts.head_sha}
    if action == "edited":
        event["changes"] = {"title": {"from": "An older title"}}
    if action == "labeled":
        event["label"] = _label(facts.repo, "models")
    return event


def merged(facts: PullFacts | None = None, *, by: str = "maintainer") -> Event:
    """`closed` by a merge."""
    done = replace(facts or PullFacts(), state="closed", merged=True, merged_by=by)
    return pull_request("closed", done, sender=by)


def closed(facts: PullFacts | None = None, *, by: str = "author") -> Event:
    """`closed` without a merge."""
    return pull_request("closed", replace(facts or PullFacts(), merged=False), sender=by)


def from_fork(action: str = "opened", facts: PullFacts | None = None) -> Event:
    """From a fork of somebody who is no collaborator."""
    forked = replace(facts or PullFacts(), head_repo="outsider/warehouse", author="outsider")
    return pull_request(action, forked)


def from_deleted_fork(action: str = "closed", facts: PullFacts | None = None) -> Event:
    """From a fork that is gone: `head.repo` is null."""
    return pull_request(action, replace(facts or PullFacts(), head_repo=None, author="outsider"))


def from_dependabot(action: str = "opened", facts: PullFacts | None = None) -> Event:
    """From Dependabot, whose runs get a read-only token and other secrets."""
    bot = replace(
        facts or PullFacts(),
        author="dependabot[bot]",
        head_ref="dependabot/pip/sqlmesh-0.236.5",
        title="Bump sqlmesh from 0.236.4 to 0.236.5",
    )
    return pull_request(action, bot)


def workflow_dispatch(
    inputs: Mapping[str, str] | None = None,
    *,
    repo: str = "acme/warehouse",
    ref: str = "refs/heads/main",
    workflow: str = ".github/workflows/sqlmesh-apply.yml",
    sender: str = "maintainer",
    private: bool = False,
) -> Event:
    """A `workflow_dispatch`; inputs are strings, `inputs` is null when the workflow has none."""
    return {
        "inputs": None if inputs is None else dict(inputs),
        "ref": ref,
        "repository": _repository(repo, private=private),
        "sender": person(sender),
        "workflow": workflow,
    }


def issue_comment(
    body: str,
    *,
    action: str = "created",
    on_pull: bool = True,
    comment_id: int = 1_000_000_001,
    login: str = "maintainer",
    facts: PullFacts | None = None,
    association: str = "COLLABORATOR",
) -> Event:
    """An `issue_comment` on a pull request, or on a plain issue with `on_pull=False`."""
    facts = facts or PullFacts()
    made = shapes.comment(API, facts.repo, facts.number, comment_id, login=login, body=body)
    page = f"{WEB}/{facts.repo}/{'pull' if on_pull else 'issues'}/{facts.number}"
    made |= {
        "html_url": f"{page}#issuecomment-{comment_id}",
        "user": person(login),
        "created_at": TIME,
        "updated_at": LATER if action == "edited" else TIME,
        "author_association": association,
    }
    event: Event = {
        "action": action,
        "issue": issue(facts, is_pull=on_pull),
        "comment": made,
        "repository": _repository(facts.repo, private=facts.private),
        "sender": person(login),
    }
    if action == "edited":
        event["changes"] = {"body": {"from": "An older text"}}
    return event


def schedule(
    cron: str = "17 3 * * *",
    *,
    repo: str = "acme/warehouse",
    workflow: str = ".github/workflows/sqlmesh-sweep.yml",
) -> Event:
    """A `schedule` event: no sender, no pull request. GitHub publishes no schema for it."""
    return {"schedule": cron, "repository": _repository(repo), "workflow": workflow}


def workflow_run(
    conclusion: str = "success",
    *,
    facts: PullFacts | None = None,
    name: str = "SQLMesh review",
    run_id: int = 9_000_000_001,
) -> Event:
    """A `workflow_run` that completed for a pull request."""
    facts = facts or PullFacts()
    run = _run(facts, name, run_id, conclusion)
    workflow = {
        "id": run["workflow_id"],
        "node_id": shapes.node_id("W", run["workflow_id"]),
        "name": name,
        "path": run["path"],
        "state": "active",
        "created_at": TIME,
        "updated_at": TIME,
        "url": run["workflow_url"],
        "html_url": f"{WEB}/{facts.repo}/blob/main/{run['path']}",
        "badge_url": f"{WEB}/{facts.repo}/workflows/review/badge.svg",
    }
    return {
        "action": "completed",
        "workflow_run": run,
        "workflow": workflow,
        "repository": _repository(facts.repo, private=facts.private),
        "sender": person(facts.author),
    }


def _run(facts: PullFacts, name: str, run_id: int, conclusion: str) -> dict[str, Any]:
    workflow = shapes.stable_id(name)
    home = f"{API}/repos/{facts.repo}"
    url = f"{home}/actions/runs/{run_id}"
    actor = person(facts.author)
    identity = {"name": facts.author, "email": f"{facts.author}@example.com"}
    commit: dict[str, Any] = {
        "id": facts.head_sha,
        "tree_id": facts.base_sha,
        "message": facts.title,
    }
    commit |= {"timestamp": TIME, "author": identity, "committer": identity}
    return {
        "id": run_id,
        "node_id": shapes.node_id("WFR", run_id),
        "name": name,
        "display_title": facts.title,
        "path": ".github/workflows/sqlmesh-review.yml",
        "event": "pull_request",
        "status": "completed",
        "conclusion": conclusion,
        "run_number": 1,
        "run_attempt": 1,
        "head_branch": facts.head_ref,
        "head_sha": facts.head_sha,
        "head_commit": commit,
        "head_repository": repo_lite(
            facts.head_repo or facts.repo, fork=facts.head_repo != facts.repo
        ),
        "repository": repo_lite(facts.repo, private=facts.private),
        # Empty for forks: GitHub does not say which pull request such a run is for.
        "pull_requests": [_run_pull(facts)] if facts.head_repo == facts.repo else [],
        "workflow_id": workflow,
        "workflow_url": f"{home}/actions/workflows/{workflow}",
        "check_suite_id": run_id,
        "check_suite_node_id": shapes.node_id("CS", run_id),
        "check_suite_url": f"{home}/check-suites/{run_id}",
        "url": url,
        "html_url": f"{WEB}/{facts.repo}/actions/runs/{run_id}",
        **{
            f"{part}_url": f"{url}/{part}"
            for part in ("jobs", "logs", "artifacts", "cancel", "rerun")
        },
        "previous_attempt_url": None,
        **dict.fromkeys(("created_at", "updated_at", "run_started_at"), TIME),
        **dict.fromkeys(("actor", "triggering_actor"), actor),
        "referenced_workflows": [],
    }


def _run_pull(facts: PullFacts) -> dict[str, Any]:
    number, url = shapes.stable_id(facts.repo), f"{API}/repos/{facts.repo}"
    home = {"id": number, "url": url, "name": facts.repo.split("/")[1]}
    return {
        "id": shapes.stable_id(f"{facts.repo}#{facts.number}"),
        "number": facts.number,
        "url": f"{url}/pulls/{facts.number}",
        "head": {"ref": facts.head_ref, "sha": facts.head_sha, "repo": home},
        "base": {"ref": facts.base_ref, "sha": facts.base_sha, "repo": home},
    }


def _label(repo: str, name: str) -> dict[str, Any]:
    number = shapes.stable_id(f"{repo}/{name}")
    url = f"{API}/repos/{repo}/labels/{name}"
    made = {"id": number, "node_id": shapes.node_id("LA", number), "url": url, "name": name}
    return made | {"color": "ededed", "default": False, "description": None}
