"""Routes about check runs: written by apps alone, 50 annotations a request, never taken away.

https://docs.github.com/en/rest/checks/runs
"""

from __future__ import annotations

from typing import Any

from . import shapes
from .front import Call, Route, route
from .shapes import error, not_found, now
from .wire import Answer, json_answer

MOST_ANNOTATIONS = 50
MAX_TEXT = 65_535
_LEVELS = ("notice", "warning", "failure")
_HIDDEN = ("annotations",)


def _shown(check: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in check.items() if name not in _HIDDEN}


def _refusal(call: Call, given: dict[str, Any]) -> Answer | None:
    """What GitHub refuses of a check beside what its description says."""
    if call.token is None or call.token.kind == "user":
        return error(403, "You must authenticate via a GitHub App.")
    output = given.get("output") or {}
    annotations = output.get("annotations") or []
    faults = []
    if len(annotations) > MOST_ANNOTATIONS:
        faults.append("No more than 50 annotations are allowed per request")
    if any(len(output.get(name) or "") > MAX_TEXT for name in ("summary", "text")):
        faults.append(f"Only {MAX_TEXT} characters are allowed")
    for one in annotations:
        if one["annotation_level"] not in _LEVELS or one["start_line"] < 1 or not one["path"]:
            faults.append(f"Invalid annotation {one['path']}:{one['start_line']}")
        if len(one.get("title") or "") > 255 or len(one["message"].encode()) > 65_536:
            faults.append("An annotation is too long")
    if given.get("conclusion") == "action_required" and not given.get("details_url"):
        faults.append("details_url is required with action_required")
    return error(422, "; ".join(faults)) if faults else None


def _create(call: Call) -> Answer:
    given = call.request.json or {}
    refusal = _refusal(call, given)
    if refusal is not None:
        return refusal
    status, _ = call.read(f"/repos/{call.state.full_name}/git/commits/{given['head_sha']}")
    if status != 200:
        return error(422, f"No commit found for SHA: {given['head_sha']}")
    number = next(call.front.world.numbers)
    here = f"{call.front.world.url}/repos/{call.state.full_name}/check-runs/{number}"
    page = f"{call.front.world.url}/{call.state.full_name}/runs/{number}"
    made: dict[str, Any] = {
        "id": number,
        "node_id": shapes.node_id("CR", number),
        "head_sha": given["head_sha"],
        "external_id": given.get("external_id", ""),
        "url": here,
        "html_url": page,
        "details_url": given.get("details_url", page),
        "status": given.get("status", "queued"),
        "conclusion": given.get("conclusion"),
        "started_at": now(),
        "completed_at": now() if given.get("conclusion") else None,
        "output": {"title": None, "summary": None, "text": None},
        "name": given["name"],
        "check_suite": {"id": number},
        "app": None,
        "pull_requests": [],
        "annotations": [],
    }
    call.state.checks[number] = made
    _take_output(made, given)
    return json_answer(201, _shown(made))


def _take_output(check: dict[str, Any], given: dict[str, Any]) -> None:
    output = dict(given.get("output") or {})
    check["annotations"] += output.pop("annotations", [])
    check["output"] |= output
    check["output"] |= {
        "annotations_count": len(check["annotations"]),
        "annotations_url": f"{check['url']}/annotations",
    }


def _update(call: Call) -> Answer:
    check = call.state.checks.get(int(call.args[0]))
    if check is None:
        return not_found()
    given = call.request.json or {}
    refusal = _refusal(call, given)
    if refusal is not None:
        return refusal
    _take_output(check, given)
    check |= {
        name: given[name] for name in ("status", "conclusion", "details_url") if name in given
    }
    return json_answer(200, _shown(check))


ROUTES: list[Route] = [
    route("POST", r"/check-runs", _create),
    route("PATCH", r"/check-runs/(\d+)", _update),
]
