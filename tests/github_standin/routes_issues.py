"""Routes about issues, their comments and reactions."""

from __future__ import annotations

from typing import Any

from .access import may_moderate
from .front import Call, Route, route
from .rewrite import issue_of_pull
from .shapes import error, node_id, not_found, now, paged, unsupported, user
from .wire import Answer, json_answer

MAX_CHARACTERS = 65_536
MAX_BYTES = 262_144
_CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def _too_long(call: Call) -> Answer | None:
    """GitHub's limits on a comment, which emulate does not have. Characters are code points.

    The error is worded as quoted in reg-viz/reg-actions#123.
    """
    try:
        body = (call.request.json or {}).get("body")
    except (ValueError, AttributeError):
        return None  # emulate answers 400 or 422.
    if not isinstance(body, str):
        return None
    if len(body) <= MAX_CHARACTERS and len(body.encode("utf-8", "surrogatepass")) <= MAX_BYTES:
        return None
    fault = {
        "resource": "IssueComment",
        "code": "unprocessable",
        "field": "data",
        "message": f"Body is too long (maximum is {MAX_CHARACTERS} characters)",
    }
    return error(422, "Validation Failed", errors=[fault])


def _comments(call: Call) -> Answer | None:
    if call.request.method == "POST":
        return _too_long(call)
    if "since" in call.request.query:
        return unsupported("`since` on issue comments, which emulate ignores")
    return None


def _comment(call: Call) -> Answer | None:
    if call.request.method == "GET" or call.token is None:
        return None
    status, found = call.read(call.request.path)
    if status != 200:
        return not_found()
    if not may_moderate(call.token, call.state, found["user"]["login"]):
        return error(403, "Must have admin rights to Repository.")
    if call.request.method == "PATCH":
        refusal = _too_long(call)
        if refusal is not None:
            return refusal
    return call.pass_on()


def _reactions(call: Call) -> Answer:
    number = int(call.args[0])
    status, _ = call.read(f"/repos/{call.state.full_name}/issues/comments/{number}")
    if status != 200:
        return not_found()
    held = call.front.world.reactions.setdefault(number, [])
    if call.request.method == "GET":
        wanted = call.request.query.get("content")
        items = [one for one in held if wanted in {None, one["content"]}]
        return paged(call.front.world.url + call.request.path, call.request.query, items)
    content = (call.request.json or {}).get("content")
    if content not in _CONTENTS:
        return error(
            422,
            "Validation Failed",
            errors=[{"resource": "Reaction", "code": "invalid", "field": "content"}],
        )
    for one in held:
        if (one["user"]["login"], one["content"]) == (call.login, content):
            return json_answer(200, one)
    made: dict[str, Any] = {"id": next(call.front.world.numbers)}
    made |= {"node_id": node_id("REA", made["id"]), "user": user(call.front.world.url, call.login)}
    made |= {"content": content, "created_at": now()}
    held.append(made)
    return json_answer(201, made)


def _reaction(call: Call) -> Answer:
    held = call.front.world.reactions.get(int(call.args[0]), [])
    for one in held:
        if one["id"] == int(call.args[1]):
            held.remove(one)
            return Answer(204)
    return not_found()


def _issue(call: Call) -> Answer | None:
    status, pull = call.read(f"/repos/{call.state.full_name}/pulls/{call.args[0]}")
    if status != 200:
        return None
    if call.request.method != "GET":
        return unsupported("changing a pull request through its issue")
    return json_answer(200, issue_of_pull(pull))


def _issues(call: Call) -> Answer | None:
    query = call.request.query
    if call.request.method == "POST":
        return _too_long(call)
    if query.get("state") != "all" or "labels" not in query:
        return unsupported("the list of issues, except all of a label: emulate lacks the pulls")
    found: list[Any] = []
    for page in range(1, 100):
        part = f"/repos/{call.state.full_name}/issues?state=all&per_page=100&page={page}"
        status, issues = call.read(part)
        if status != 200:
            return not_found()
        found += [one for one in issues if "pull_request" not in one]
        if len(issues) < 100:
            break
    wanted = set(query["labels"].split(","))
    labelled = [one for one in found if wanted <= {label["name"] for label in one["labels"]}]
    return paged(call.front.world.url + call.request.path, query, labelled)


ROUTES: list[Route] = [
    route("*", r"/issues/\d+/comments", _comments),
    route("*", r"/issues/comments/\d+", _comment),
    route("GET", r"/issues/comments/(\d+)/reactions", _reactions),
    route("POST", r"/issues/comments/(\d+)/reactions", _reactions),
    route("DELETE", r"/issues/comments/(\d+)/reactions/(\d+)", _reaction),
    route("*", r"/issues/(\d+)", _issue),
    route("*", r"/issues", _issues),
]
