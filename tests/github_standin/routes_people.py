"""Routes about who one is and what one may: `/user`, GraphQL, collaborator permissions."""

from __future__ import annotations

import json
import re
from typing import Any

from . import shapes
from .access import legacy_permission
from .front import Call, Route, route
from .shapes import error, not_found, unsupported
from .wire import Answer, json_answer

_VIEWER = re.compile(r"\bviewer\s*\{([^{}]*)\}")
_MUTATION = re.compile(r"\b(minimizeComment|unminimizeComment)\b")


def _own_user(call: Call) -> Answer | None:
    if call.token is None:
        return error(401, "Requires authentication")
    if call.token.kind == "user":
        return None
    return error(403, "Resource not accessible by integration")


def _permission(call: Call) -> Answer:
    login, state = call.request.segments[-2], call.state
    # GitHub's words for apps and for unknown names, as quoted in github/gh-aw#18556.
    if login not in call.front.emulator.logins or shapes.is_bot(login):
        return error(404, f"{login} is not a user")
    permission, role = legacy_permission(state.roles.get(login), private=state.private)
    rank = state.rank(login)
    names = ("pull", "triage", "push", "maintain", "admin")
    allowed = {name: rank >= level for level, name in enumerate(names)}
    if not state.private:
        allowed["pull"] = True
    user = {**shapes.user(call.front.world.url, login), "permissions": allowed, "role_name": role}
    return json_answer(200, {"permission": permission, "role_name": role, "user": user})


def _graphql(call: Call) -> Answer:
    if call.token is None:
        return error(401, "This endpoint requires you to be authenticated.")
    asked = json.loads(call.request.body)
    query, variables = asked.get("query", ""), asked.get("variables") or {}
    if found := _MUTATION.search(query):
        return _minimize(call, found[1], variables.get("input") or {})
    if found := _VIEWER.search(query):
        return _viewer(call.token.login, found[1].replace(",", " ").split())
    return unsupported(f"this GraphQL: {query[:200]}")


def _viewer(login: str, fields: list[str]) -> Answer:
    number = shapes.user_number(login)
    known: dict[str, Any] = {
        "login": login,
        "databaseId": number,
        "id": shapes.node_id("U", number),
        "__typename": "User",
    }
    for field in fields:
        if field not in known:
            message = f"Field '{field}' doesn't exist on type 'User'"
            return json_answer(200, {"errors": [{"message": message, "path": ["query", "viewer"]}]})
    return json_answer(200, {"data": {"viewer": {field: known[field] for field in fields}}})


def _minimize(call: Call, mutation: str, given: dict[str, Any]) -> Answer:
    hidden = mutation == "minimizeComment"
    subject = given.get("subjectId")
    if not isinstance(subject, str) or (hidden and not given.get("classifier")):
        message = f"{mutation} needs subjectId" + (" and classifier" if hidden else "")
        return json_answer(200, {"errors": [{"message": message}]})
    token = call.token
    if token is not None and token.kind != "user" and not token.may("pull-requests", write=True):
        message = "Resource not accessible by integration"
        refused = {"type": "FORBIDDEN", "path": [mutation], "message": message}
        return json_answer(200, {"data": {mutation: None}, "errors": [refused]})
    minimized = call.front.world.minimized
    if hidden:
        minimized[subject] = given["classifier"]
    else:
        minimized.pop(subject, None)
    field = "minimizedComment" if hidden else "unminimizedComment"
    return json_answer(200, {"data": {mutation: {field: {"isMinimized": hidden}}}})


def _user(call: Call) -> Answer | None:
    known = call.request.segments[-1] in call.front.emulator.logins
    return None if known else not_found()


def _held_by_the_test(call: Call) -> Answer:
    return unsupported(f"{call.request.method} {call.request.path}; a test sets that up itself")


ROUTES: list[Route] = [
    route("GET", r"/user", _own_user, below_repo=False),
    route("POST", r"/graphql", _graphql, below_repo=False),
    route("GET", r"/users/[^/]+", _user, below_repo=False),
    route("GET", r"/collaborators/[^/]+/permission", _permission),
    # The front decides about roles, and emulate's collaborators are only what the front let in.
    route("*", r"/collaborators(?:/[^/]+)?", _held_by_the_test),
    route("POST", r"/(forks|transfer)", _held_by_the_test),
    route("DELETE", r"", _held_by_the_test),
    route("POST", r"/user/repos|/orgs/[^/]+/repos", _held_by_the_test, below_repo=False),
]
