"""Routes about pull requests: files, reads while GitHub is computing, merging."""

from __future__ import annotations

import json
from typing import Any

from .front import Call, Route, route
from .shapes import error, not_found, paged, unsupported, user
from .state import RepoState
from .wire import Answer


def _fetch(call: Call) -> dict[str, Any] | None:
    status, pull = call.read(f"/repos/{call.state.full_name}/pulls/{call.args[0]}")
    return pull if status == 200 else None


def _pull(call: Call) -> Answer | None:
    accept = call.request.headers.get("accept", "")
    if "diff" in accept or "patch" in accept:
        return unsupported("a pull request as diff or patch")
    if call.request.method != "GET":
        return None
    answer = call.pass_on()
    facts = call.state.pull(int(call.args[0]))
    facts.computing_reads = max(0, facts.computing_reads - 1)
    return answer


def _files(call: Call) -> Answer:
    pull = _fetch(call)
    if pull is None:
        return not_found()
    files = call.state.pull(pull["number"]).files
    if files is None:
        base, head = pull["base"]["sha"], pull["head"]["sha"]
        status, compared = call.read(f"/repos/{call.state.full_name}/compare/{base}...{head}")
        if status != 200:
            return unsupported(
                f"the files of a pull request whose commits were not pushed ({head})"
            )
        files = compared["files"]
    url = call.front.world.url + call.request.path
    return paged(url, call.request.query, files[:3000])


def _commits(call: Call) -> Answer:
    pull = _fetch(call)
    if pull is None:
        return not_found()
    base, head = pull["base"]["sha"], pull["head"]["sha"]
    status, compared = call.read(f"/repos/{call.state.full_name}/compare/{base}...{head}")
    if status != 200:
        return unsupported(f"the commits of a pull request that were not pushed ({head})")
    url = call.front.world.url
    commits = [_signed(url, call.state, commit) for commit in compared["commits"]]
    return paged(url + call.request.path, call.request.query, commits[:250])


def _signed(url: str, repo: RepoState, commit: dict[str, Any]) -> dict[str, Any]:
    """A commit with what the test has said of its signature."""
    found = repo.signatures.get(commit["sha"])
    if found is None:
        return commit
    verification = commit["commit"]["verification"] | {
        "verified": found.verified,
        "reason": "valid" if found.verified else "unknown_key",
    }
    people = {"author": found.author, "committer": found.committer}
    return (
        commit
        | {"commit": commit["commit"] | {"verification": verification}}
        | {key: None if login is None else user(url, login) for key, login in people.items()}
    )


def _merge(call: Call) -> Answer:
    pull = _fetch(call)
    if pull is None:
        return not_found()
    given = call.request.json or {}
    if pull["state"] != "open" or pull["draft"] or pull["mergeable"] is not True:
        return error(405, "Pull Request is not mergeable")
    if given.pop("sha", pull["head"]["sha"]) != pull["head"]["sha"]:
        return error(409, "Head branch was modified. Review and try the merge again.")
    answer = call.pass_on(json.dumps(given).encode())
    if answer.status == 200:
        call.state.pull(pull["number"]).merge_commit_sha = answer.json["sha"]
    return answer


def _unserved(call: Call) -> Answer:
    return unsupported(
        f"{call.request.method} {call.request.path}, which emulate lacks or gets wrong"
    )


ROUTES: list[Route] = [
    route("*", r"/pulls/(\d+)", _pull),
    route("GET", r"/pulls/(\d+)/files", _files),
    route("PUT", r"/pulls/(\d+)/merge", _merge),
    route("GET", r"/pulls/(\d+)/commits", _commits),
    route("GET", r"/check-runs/\d+/annotations", _unserved),
    route(
        "*", r"/(statuses|deployments|environments|dispatches|tarball|zipball)(?:/.*)?", _unserved
    ),
    route("GET", r"/commits/[^/]+/(pulls|status|statuses)", _unserved),
]
