"""Routes about GitHub Actions: workflows, dispatches, runs and artifacts. All of it lives in the
front.
"""

from __future__ import annotations

import json
from typing import Any

from . import shapes
from .front import Call, Route, route
from .shapes import error, not_found, now
from .state import Artifact, Dispatch, RepoState, Run, Workflow
from .wire import Answer, json_answer

MAX_INPUTS = 25


def _base(call: Call) -> str:
    return f"{call.front.world.url}/repos/{call.state.full_name}"


def _workflow_json(call: Call, workflow: Workflow) -> dict[str, Any]:
    name = workflow.path.rsplit("/", 1)[-1]
    page = f"{call.front.world.url}/{call.state.full_name}"
    return {
        "id": workflow.id,
        "node_id": shapes.node_id("W", workflow.id),
        "name": name.removesuffix(".yml"),
        "path": workflow.path,
        "state": "active",
        "created_at": now(),
        "updated_at": now(),
        "url": f"{_base(call)}/actions/workflows/{workflow.id}",
        "html_url": f"{page}/blob/main/{workflow.path}",
        "badge_url": f"{page}/workflows/{name}/badge.svg",
    }


def _find(state: RepoState, name: str) -> Workflow | None:
    return next((one for one in state.workflows if one.answers_to(name)), None)


def _workflows(call: Call) -> Answer:
    held = [_workflow_json(call, one) for one in call.state.workflows]
    return json_answer(200, {"total_count": len(held), "workflows": held})


def _workflow(call: Call) -> Answer:
    found = _find(call.state, call.args[0])
    return json_answer(200, _workflow_json(call, found)) if found else not_found()


def _dispatch(call: Call) -> Answer:
    state, given = call.state, call.request.json or {}
    workflow = _find(state, call.args[0])
    if workflow is None:
        return not_found()
    ref = str(given.get("ref", ""))
    branch = ref.removeprefix("refs/heads/")
    status, tip = call.read(f"/repos/{state.full_name}/git/ref/heads/{branch}")
    if not branch or status != 200:
        return error(422, f"No ref found for: {ref}")
    inputs = given.get("inputs") or {}
    refusal = _check_inputs(workflow, inputs)
    if refusal is not None:
        return refusal
    run = Run(
        id=next(call.front.world.numbers),
        workflow=workflow,
        event="workflow_dispatch",
        head_branch=branch,
        head_sha=tip["object"]["sha"],
        login=call.login,
    )
    state.runs[run.id] = run
    name = workflow.path.rsplit("/", 1)[-1]
    state.dispatches.append(Dispatch(name, ref, inputs, call.login, run.id))
    if given.get("return_run_details"):
        made = _run_json(call, run)
        details = {"workflow_run_id": run.id, "run_url": made["url"], "html_url": made["html_url"]}
        return json_answer(200, details)
    return Answer(204)


def _check_inputs(workflow: Workflow, inputs: dict[str, Any]) -> Answer | None:
    if len(inputs) > MAX_INPUTS:
        return error(422, f"Too many inputs: at most {MAX_INPUTS}")
    if workflow.inputs is None:
        return None
    if unexpected := sorted(set(inputs) - set(workflow.inputs)):
        return error(422, f"Unexpected inputs provided: {json.dumps(unexpected)}")
    for name, required in workflow.inputs.items():
        if required and not inputs.get(name):
            return error(422, f"Required input '{name}' not provided")
    return None


def _run_json(call: Call, run: Run) -> dict[str, Any]:
    url = f"{_base(call)}/actions/runs/{run.id}"
    _, repository = call.read(f"/repos/{call.state.full_name}")
    actor = shapes.user(call.front.world.url, run.login)
    person = {"name": run.login, "email": f"{run.login}@example.com"}
    return {
        "id": run.id,
        "name": run.workflow.path.rsplit("/", 1)[-1],
        "node_id": shapes.node_id("WFR", run.id),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": run.workflow.path,
        "display_title": run.workflow.path,
        "run_number": 1,
        "run_attempt": 1,
        "event": run.event,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": run.workflow.id,
        "check_suite_id": run.id,
        "check_suite_node_id": shapes.node_id("CS", run.id),
        "url": url,
        "html_url": f"{call.front.world.url}/{call.state.full_name}/actions/runs/{run.id}",
        "pull_requests": [],
        "created_at": now(),
        "updated_at": now(),
        "run_started_at": now(),
        "actor": actor,
        "triggering_actor": actor,
        **{
            f"{name}_url": f"{url}/{name}"
            for name in ("jobs", "logs", "artifacts", "cancel", "rerun")
        },
        "check_suite_url": f"{_base(call)}/check-suites/{run.id}",
        "workflow_url": f"{_base(call)}/actions/workflows/{run.workflow.id}",
        "previous_attempt_url": None,
        "head_commit": {
            "id": run.head_sha,
            "tree_id": run.head_sha,
            "message": "",
            "timestamp": now(),
            "author": person,
            "committer": person,
        },
        "repository": repository,
        "head_repository": repository,
    }


def _runs(call: Call) -> Answer:
    held = [_run_json(call, run) for run in reversed(call.state.runs.values())]
    return json_answer(200, {"total_count": len(held), "workflow_runs": held})


def _run(call: Call) -> Answer:
    run = call.state.runs.get(int(call.args[0]))
    return json_answer(200, _run_json(call, run)) if run else not_found()


def _artifact_json(call: Call, artifact: Artifact) -> dict[str, Any]:
    url = f"{_base(call)}/actions/artifacts/{artifact.id}"
    run = call.state.runs[artifact.run_id]
    return {
        "id": artifact.id,
        "node_id": shapes.node_id("A", artifact.id),
        "name": artifact.name,
        "size_in_bytes": len(artifact.content),
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": artifact.expired,
        "digest": artifact.digest,
        "created_at": now(),
        "updated_at": now(),
        "expires_at": "2099-01-01T00:00:00Z",
        "workflow_run": {
            "id": run.id,
            "repository_id": shapes.stable_id(call.state.full_name),
            "head_repository_id": shapes.stable_id(call.state.full_name),
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }


def _artifacts(call: Call) -> Answer:
    run = call.args[0] if call.args else ""
    if run and int(run) not in call.state.runs:
        return not_found()
    name = call.request.query.get("name")
    held = [
        _artifact_json(call, one)
        for one in call.state.artifacts.values()
        if run in {"", str(one.run_id)} and name in {None, one.name}
    ]
    per_page = max(1, min(100, int(call.request.query.get("per_page") or 30)))
    page = max(1, int(call.request.query.get("page") or 1))
    part = held[(page - 1) * per_page : page * per_page]
    links = shapes.page_links(call.front.world.url + call.request.path, page, per_page, len(held))
    payload = {"total_count": len(held), "artifacts": part}
    return json_answer(200, payload, {"Link": links} if links else None)


def _artifact(call: Call) -> Answer:
    found = call.state.artifacts.get(int(call.args[0]))
    return json_answer(200, _artifact_json(call, found)) if found else not_found()


def _download(call: Call) -> Answer:
    found = call.state.artifacts.get(int(call.args[0]))
    if found is None:
        return not_found()
    if found.expired:
        return error(410, "Artifact has expired")
    where = f"{call.front.world.url}/_downloads/{call.state.full_name}/{found.id}"
    return Answer(302, headers={"Location": where})


def _content(call: Call) -> Answer:
    state = call.front.world.repos.get(call.args[0])
    found = state.artifacts.get(int(call.args[1])) if state else None
    if found is None:
        return not_found()
    return Answer(200, found.content, {"Content-Type": "application/zip"})


ROUTES: list[Route] = [
    route("GET", r"/actions/workflows", _workflows),
    route("GET", r"/actions/workflows/([^/]+)", _workflow),
    route("POST", r"/actions/workflows/([^/]+)/dispatches", _dispatch),
    route("GET", r"/actions/runs", _runs),
    route("GET", r"/actions/runs/(\d+)", _run),
    route("GET", r"/actions/runs/(\d+)/artifacts", _artifacts),
    route("GET", r"/actions/artifacts", _artifacts),
    route("GET", r"/actions/artifacts/(\d+)", _artifact),
    route("GET", r"/actions/artifacts/(\d+)/zip", _download),
    route("GET", r"/_downloads/([^/]+/[^/]+)/(\d+)", _content, below_repo=False),
]
