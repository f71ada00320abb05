"""The event file: what is read from it, and that no shape of it makes the parser crash."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.actions.event import (
    CommentEvent,
    DispatchEvent,
    Event,
    MergeGroupEvent,
    OtherEvent,
    PullRequestEvent,
    ScheduleEvent,
    WorkflowRunEvent,
    is_repository_in_event,
    parse_github_event,
    read_github_event,
)
from ci_bot.errors import BadInput

HEAD, BASE, MERGE = "a" * 40, "b" * 40, "c" * 40


def pull_request(**changes: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "action": "opened",
        "number": 7,
        "pull_request": {
            "number": 7,
            "state": "open",
            "draft": False,
            "merged": False,
            "merge_commit_sha": None,
            "user": {"login": "ada", "type": "User"},
            "head": {"sha": HEAD, "ref": "more-delays", "repo": {"full_name": "octo/flights"}},
            "base": {"sha": BASE, "ref": "main", "repo": {"full_name": "octo/flights"}},
        },
        "repository": {"full_name": "octo/flights"},
        "sender": {"login": "grace"},
    }
    for path, value in changes.items():
        *way, last = path.split("__")
        place = payload
        for key in way:
            place = place[key]
        place[last] = value
    return payload


COMMENT = {
    "action": "created",
    "issue": {"number": 7, "state": "open", "pull_request": {"url": "https://x.example/7"}},
    "comment": {
        "id": 99,
        "body": "/sqlmesh plan\r\nthanks",
        "user": {"login": "ada", "type": "User"},
    },
    "repository": {"full_name": "octo/flights"},
}
DISPATCH = {
    "inputs": {"pr_number": "7", "comment-id": "12", "dry": True, "count": 3, "none": None},
    "ref": "refs/heads/main",
    "repository": {"full_name": "octo/flights"},
    "sender": {"login": "ada"},
}
WORKFLOW_RUN = {
    "action": "completed",
    "workflow_run": {
        "id": 5,
        "event": "pull_request",
        "conclusion": "success",
        "head_sha": HEAD,
        "head_branch": "more-delays",
        "head_repository": {"full_name": "stranger/flights"},
    },
    "repository": {"full_name": "octo/flights"},
}
MERGE_GROUP = {
    "action": "checks_requested",
    "merge_group": {
        "head_sha": HEAD,
        "base_sha": BASE,
        "head_ref": f"refs/heads/gh-readonly-queue/main/pr-104-{BASE}",
        "base_ref": "refs/heads/main",
    },
    "repository": {"full_name": "octo/flights"},
}
SCHEDULE = {"schedule": "17 3 * * *"}

SAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("pull_request", pull_request()),
    ("pull_request_target", pull_request(action="closed", pull_request__merged=True)),
    ("issue_comment", COMMENT),
    ("workflow_dispatch", DISPATCH),
    ("workflow_run", WORKFLOW_RUN),
    ("merge_group", MERGE_GROUP),
    ("schedule", SCHEDULE),
    ("push", {"ref": "refs/heads/main"}),
]


def test_parse_event__pull_request() -> None:
    event = parse_github_event("pull_request", pull_request(), sha=MERGE)
    assert event == PullRequestEvent(
        name="pull_request",
        action="opened",
        repository="octo/flights",
        number=7,
        head_sha=HEAD,
        base_sha=BASE,
        merge_sha=MERGE,
        head_ref="more-delays",
        base_ref="main",
        head_repository="octo/flights",
        author="ada",
        draft=False,
        merged=False,
        sender="grace",
    )
    assert event.has_secrets


def test_parse_event__github_sha_counts_for_pull_request_only() -> None:
    """On `pull_request_target` it is the base branch's commit, which is no merge commit."""
    payload = pull_request(action="closed", pull_request__merge_commit_sha="d" * 40)
    target = parse_github_event("pull_request_target", payload, sha=MERGE)
    assert isinstance(target, PullRequestEvent)
    assert target.merge_sha == "d" * 40
    nothing = parse_github_event("pull_request", pull_request(), sha="refs/pull/7/merge")
    assert isinstance(nothing, PullRequestEvent)
    assert nothing.merge_sha is None


@pytest.mark.parametrize(
    ("head_repo", "fork"),
    [
        ({"full_name": "octo/flights"}, False),
        ({"full_name": "Octo/Flights"}, False),
        ({"full_name": "stranger/flights"}, True),
        ({"full_name": "octo/flights2"}, True),
        (None, True),
        ({}, True),
    ],
)
def test_fork__is_another_repository_or_one_that_is_gone(head_repo: Any, fork: bool) -> None:
    event = parse_github_event("pull_request", pull_request(pull_request__head__repo=head_repo))
    assert isinstance(event, PullRequestEvent)
    assert event.is_fork is fork
    assert event.has_secrets is not fork


def test_dependabot__is_decided_by_the_author_and_not_by_the_sender() -> None:
    by_author = parse_github_event(
        "pull_request", pull_request(pull_request__user={"login": "dependabot[bot]"})
    )
    by_sender = parse_github_event(
        "pull_request", pull_request(sender={"login": "dependabot[bot]"})
    )
    assert isinstance(by_author, PullRequestEvent)
    assert isinstance(by_sender, PullRequestEvent)
    assert by_author.is_dependabot
    assert not by_author.has_secrets
    assert not by_sender.is_dependabot
    assert by_sender.has_secrets


def test_pull_request__of_a_deleted_account_has_the_ghost_as_author() -> None:
    event = parse_github_event("pull_request", pull_request(pull_request__user=None))
    assert isinstance(event, PullRequestEvent)
    assert event.author == "ghost"


BASE_CHANGED = {"base": {"ref": {"from": "main"}, "sha": {"from": "d" * 40}}}


@pytest.mark.parametrize(
    ("action", "changes", "retargeted"),
    [
        ("edited", BASE_CHANGED, True),
        ("edited", {**BASE_CHANGED, "title": {"from": "x"}}, True),
        ("edited", {"title": {"from": "base"}}, False),
        ("edited", {"body": {"from": None}}, False),
        ("edited", {"base": None}, False),
        ("edited", {}, False),
        ("edited", None, False),
        ("edited", "base", False),
        ("synchronize", BASE_CHANGED, False),
        ("closed", BASE_CHANGED, False),
    ],
)
def test_pull_request__is_retargeted_where_an_edit_changed_its_base(
    action: str, changes: Any, retargeted: bool
) -> None:
    """https://docs.github.com/en/webhooks/webhook-events-and-payloads#pull_request (`edited`)"""
    event = parse_github_event("pull_request", pull_request(action=action, changes=changes))
    assert isinstance(event, PullRequestEvent)
    assert event.retargeted is retargeted
    assert not parse_github_event("pull_request", pull_request(action=action)).retargeted


def test_parse_event__dispatch_inputs_become_text_with_dashes() -> None:
    event = parse_github_event("workflow_dispatch", DISPATCH)
    assert event == DispatchEvent(
        repository="octo/flights",
        ref="refs/heads/main",
        sender="ada",
        inputs={"pr-number": "7", "comment-id": "12", "dry": "true", "count": "3"},
    )
    bare = parse_github_event("workflow_dispatch", {"inputs": None})
    assert bare == DispatchEvent(repository=None, ref=None, sender="ghost", inputs={})


def test_parse_event__comment_on_a_pull_request() -> None:
    assert parse_github_event("issue_comment", COMMENT) == CommentEvent(
        action="created",
        repository="octo/flights",
        number=7,
        on_pull_request=True,
        open=True,
        comment_id=99,
        body="/sqlmesh plan\r\nthanks",
        author="ada",
        author_is_bot=False,
    )


def test_parse_event__comment_on_a_plain_issue() -> None:
    payload = copy.deepcopy(COMMENT)
    del payload["issue"]["pull_request"]  # type: ignore[attr-defined]
    event = parse_github_event("issue_comment", payload)
    assert isinstance(event, CommentEvent)
    assert not event.on_pull_request


@pytest.mark.parametrize(
    ("user", "bot"),
    [
        ({"login": "robot", "type": "Bot"}, True),
        ({"login": "robot[bot]"}, True),
        ({"login": "robot", "type": "User"}, False),
        (None, False),
    ],
)
def test_parse_event__comment_of_a_bot(user: dict[str, Any] | None, bot: bool) -> None:
    event = parse_github_event("issue_comment", {**COMMENT, "comment": {"id": 1, "user": user}})
    assert isinstance(event, CommentEvent)
    assert event.author_is_bot is bot


def test_parse_event__workflow_run_of_a_fork() -> None:
    event = parse_github_event("workflow_run", WORKFLOW_RUN)
    assert isinstance(event, WorkflowRunEvent)
    assert (event.run_id, event.run_event, event.head_sha) == (5, "pull_request", HEAD)
    assert event.is_fork


def test_parse_event__merge_group_names_the_pull_request_in_its_ref() -> None:
    assert parse_github_event("merge_group", MERGE_GROUP) == MergeGroupEvent(
        action="checks_requested",
        repository="octo/flights",
        head_sha=HEAD,
        base_sha=BASE,
        number=104,
        base_ref="main",
    )
    other = copy.deepcopy(MERGE_GROUP)
    other["merge_group"]["head_ref"] = "refs/heads/main"  # type: ignore[index]
    del other["merge_group"]["base_ref"]  # type: ignore[attr-defined]
    unnamed = parse_github_event("merge_group", other)
    assert isinstance(unnamed, MergeGroupEvent)
    assert (unnamed.number, unnamed.base_ref) == (None, None)


def test_parse_event__schedule_needs_nothing() -> None:
    assert parse_github_event("schedule", {}) == ScheduleEvent(cron=None)
    assert parse_github_event("schedule", SCHEDULE) == ScheduleEvent(cron="17 3 * * *")


def test_parse_event__unknown_event_is_no_error() -> None:
    assert parse_github_event("star", {"action": "created"}) == OtherEvent(
        name="star", action="created"
    )
    assert parse_github_event("", None) == OtherEvent(name="", action=None)


@pytest.mark.parametrize("text", ["", "not json", "{", "[" * 100_000, '{"a": ' + "9" * 5_000 + "}"])
def test_read_event__what_is_no_json_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="not JSON") as caught:
        read_github_event("pull_request", text)
    assert caught.value.hint is not None
    assert "GITHUB_EVENT_PATH" in caught.value.hint


@pytest.mark.parametrize("payload", [None, [], 3, "text", True])
def test_parse_event__document_that_is_no_object(payload: Any) -> None:
    with pytest.raises(BadInput, match="the whole document is not a JSON object"):
        parse_github_event("pull_request", payload)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("pull_request__head__sha", "main", "`pull_request.head.sha` is not a commit's 40"),
        ("pull_request__head__sha", HEAD.upper(), "`pull_request.head.sha` is not a commit's 40"),
        ("pull_request__number", True, "`pull_request.number` is not a positive whole number"),
        ("pull_request__number", "7", "`pull_request.number` is not a positive whole number"),
        ("pull_request__number", 0, "`pull_request.number` is not a positive whole number"),
        ("pull_request__number", 2**63, "`pull_request.number` is not a positive whole number"),
        ("pull_request__merged", "yes", "`pull_request.merged` is not true or false"),
        ("repository__full_name", "../..", "`repository.full_name` is not owner/name"),
        ("action", "", "`action` is not a name"),
    ],
)
def test_parse_event__wrong_value_is_named(path: str, value: Any, complaint: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_github_event("pull_request", pull_request(**{path: value}))
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    "name", ["octo/flights", "octo_corp/f.l-i_g", "-x/.github", "o/..x", "a.b/c"]
)
def test_is_repository__takes(name: str) -> None:
    assert is_repository_in_event(name)


@pytest.mark.parametrize(
    "name",
    ["octo", "octo/", "/x", "a/b/c", "a/..", "../b", "./b", "a/.", "a/b c", "a/b\n", "ä/b", "a/b?"],
)
def test_is_repository__refuses(name: str) -> None:
    assert not is_repository_in_event(name)


def paths(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a JSON document."""
    items = value.items() if isinstance(value, dict) else []
    for key, below in items:
        yield (*way, key)
        yield from paths(below, (*way, key))


DELETIONS = [
    (name, payload, way) for name, payload in SAMPLES for way in paths(payload) if name != "push"
]


@pytest.mark.parametrize(
    ("name", "payload", "way"), DELETIONS, ids=[f"{n}-{'.'.join(w)}" for n, _, w in DELETIONS]
)
def test_parse_event__each_missing_key_is_an_event_or_is_named(
    name: str, payload: dict[str, Any], way: tuple[str, ...]
) -> None:
    changed = copy.deepcopy(payload)
    place = changed
    for key in way[:-1]:
        place = place[key]
    del place[way[-1]]
    try:
        parse_github_event(name, changed)
    except BadInput as error:
        assert f"lacks `{'.'.join(way)}" in error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, Any]:
    """A sample with some values deleted or replaced by any JSON, under its own or another name."""
    name, payload = draw(st.sampled_from(SAMPLES))
    changed: Any = copy.deepcopy(payload)
    for _ in range(draw(st.integers(1, 4))):
        ways = list(paths(changed))
        if not ways:
            break
        way = draw(st.sampled_from(ways))
        place = changed
        for key in way[:-1]:
            place = place[key]
        if draw(st.booleans()):
            del place[way[-1]]
        else:
            place[way[-1]] = draw(JSON)
    other = draw(st.booleans())
    return (draw(st.sampled_from([each for each, _ in SAMPLES])) if other else name), changed


@settings(max_examples=500, deadline=None)
@given(damaged() | st.tuples(st.sampled_from([name for name, _ in SAMPLES]), JSON))
def test_parse_event__any_shape_is_an_event_or_bad_input(sample: tuple[str, Any]) -> None:
    name, payload = sample
    try:
        event = parse_github_event(name, payload)
    except BadInput as error:
        assert error.exit_code == 2
        assert error.hint
    else:
        assert isinstance(event, Event)
        checked(event)


def checked(event: Event) -> None:
    """What every event keeps: typed fields, and names that can be put into a path."""
    for each in fields(event):
        value = getattr(event, each.name)
        if each.name == "repository" and value is not None:
            assert is_repository_in_event(value)
        if each.name.endswith("_sha") and value is not None:
            assert len(value) == 40
        if each.name in ("number", "comment_id", "run_id") and value is not None:
            assert type(value) is int
            assert 0 < value < 2**63


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200) | JSON.map(json.dumps))
def test_read_event__any_text_is_an_event_or_bad_input(text: str) -> None:
    try:
        read_github_event("pull_request", text)
    except BadInput:
        return
    raise AssertionError("no text that short is a whole pull request event")


def test_import__is_light_enough_for_an_event_that_needs_nothing() -> None:
    """Neither pydantic, PyGithub, Jinja nor the warehouse's libraries come with the routing."""
    code = (
        "import sys, ci_bot.bot.actions.event, ci_bot.bot.actions.activities, ci_bot.bot.actions.comment_command;"
        "heavy = {'pydantic', 'github', 'requests', 'jinja2', 'sqlmesh', 'pyspark'};"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {*heavy, 'click'}));"
        "import ci_bot.bot.cli.commands;"
        "print(sorted({name.split('.')[0] for name in sys.modules} & heavy))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.split() == ["[]", "[]"], "the routing, and the command that reaches it"
