"""Writing exactly once, and what a review costs, with real PyGithub."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ci_bot.bot.github.failures import HURRIED, PATIENT, GitHubRateLimits
from ci_bot.bot.github.sticky_posts import FRESH_SECONDS, GitHubStickyComment
from ci_bot.bot.github.transport import UnclearWrite
from ci_bot.errors import GitHubUnavailable, RequestRefused
from tests.github_standin.script import (
    Reply,
    connection_reset,
    forbidden,
    secondary_limit,
    server_error,
    silence,
    too_many_requests,
)
from tests.github_standin.scripted import ScriptedServer
from tests.integration.github_client_parts import (
    LIST,
    ME,
    REPO,
    ROOT,
    Clock,
    asked,
    body,
    client,
    named,
    scripted_github,
)

TODAY = "2026-08-22T12:00:00Z"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_github() as started:
        yield started


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    "fault",
    [
        server_error(502, store_first=True),
        server_error(504, store_first=True),
        connection_reset(store_first=True),
        silence(store_first=True),
    ],
    ids=named,
)
def test_create_comment__that_was_taken_after_all_is_not_written_twice(
    server: ScriptedServer, clock: Clock, fault: Reply
) -> None:
    server.script.on("POST", LIST, fault)
    written = client(server, clock, limits=GitHubRateLimits(timeout=1)).create_comment(
        7, "a report\r\n"
    )
    (stored,) = server.github.comments(REPO, 7)
    assert written.id == stored["id"]
    assert asked(server) == [f"POST {LIST}", f"GET {LIST}"]


@pytest.mark.parametrize("fault", [server_error(502), connection_reset()], ids=named)
def test_create_comment__that_was_not_taken_is_written_again(
    server: ScriptedServer, clock: Clock, fault: Reply
) -> None:
    server.github.add_comment(REPO, 7, "another report")
    server.script.on("POST", LIST, fault, fault)
    written = client(server, clock).create_comment(7, "a report")
    assert [each["body"] for each in server.github.comments(REPO, 7)] == [
        "another report",
        "a report",
    ]
    assert written.body == "a report"
    assert asked(server) == [f"POST {LIST}", f"GET {LIST}"] * 2 + [f"POST {LIST}"]


def test_create_comment__rate_limit_is_no_doubt_and_is_waited_for(
    server: ScriptedServer, clock: Clock
) -> None:
    server.script.on("POST", LIST, secondary_limit(3), too_many_requests(2))
    client(server, clock).create_comment(7, "a report")
    assert asked(server) == [f"POST {LIST}"] * 3
    assert clock.slept == [3.0, 2.0]


def test_create_comment__gives_up_in_the_end(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("POST", LIST, server_error(), forever=True)
    with pytest.raises(GitHubUnavailable):
        client(server, clock).create_comment(7, "a report")
    assert asked(server).count(f"POST {LIST}") == PATIENT.tries
    assert server.github.comments(REPO, 7) == []


def test_delete_comment__that_is_gone_already_is_a_success(
    server: ScriptedServer, clock: Clock
) -> None:
    number = server.github.add_comment(REPO, 7, "twice")
    path = f"{ROOT}/issues/comments/{number}"
    server.script.on("DELETE", path, server_error(502, store_first=True))
    client(server, clock).delete_comment(number)
    assert asked(server) == [f"DELETE {path}"] * 2


def test_writes__are_a_second_apart_and_reads_are_not(server: ScriptedServer, clock: Clock) -> None:
    number = server.github.add_comment(REPO, 7, "old")
    github = client(server, clock)
    started = time.monotonic()
    github.update_comment(number, "1")
    github.get_comment(number)
    assert clock.slept == []
    clock.passed += 0.4
    github.update_comment(number, "2")
    assert clock.slept == [pytest.approx(0.6)]
    clock.passed += 30
    github.update_comment(number, "3")
    assert len(clock.slept) == 1
    assert time.monotonic() - started < 1.5, "PyGithub must not sleep on its own"


def test_dispatch_workflow__sends_the_inputs_once(server: ScriptedServer, clock: Clock) -> None:
    path = f"{ROOT}/actions/workflows/apply.yml/dispatches"
    server.github.serve("POST", path, None, 204)
    client(server, clock).dispatch_workflow("apply.yml", "main", {"pr-number": "7"})
    (only,) = server.requests
    assert only.request.json == {"ref": "main", "inputs": {"pr-number": "7"}}


def test_dispatch_workflow__in_doubt_is_not_repeated(server: ScriptedServer, clock: Clock) -> None:
    path = f"{ROOT}/actions/workflows/apply.yml/dispatches"
    server.script.on("POST", path, server_error())
    with pytest.raises(GitHubUnavailable) as caught:
        client(server, clock).dispatch_workflow("apply.yml", "main", {})
    assert not isinstance(caught.value, UnclearWrite)
    assert caught.value.hint is not None
    assert "Actions tab" in caught.value.hint
    assert len(server.requests) == 1


def test_dispatch_workflow__without_the_permission_names_it(
    server: ScriptedServer, clock: Clock
) -> None:
    server.script.on("POST", ".*/dispatches", forbidden())
    with pytest.raises(RequestRefused, match="`actions: write`"):
        client(server, clock).dispatch_workflow("apply.yml", "main", {})


def test_add_reaction__is_sent_again_because_twice_is_once(
    server: ScriptedServer, clock: Clock
) -> None:
    path = f"{ROOT}/issues/comments/99/reactions"
    server.github.serve("POST", path, {"id": 1, "content": "eyes"}, 201)
    server.script.on("POST", path, server_error())
    client(server, clock).add_reaction(99, "eyes")
    assert [each.request.json for each in server.requests] == [{"content": "eyes"}] * 2


def review(server: ScriptedServer, clock: Clock, *, run_id: int = 100, note: bool = False) -> None:
    """The requests of one review: look, say that it is planned, plan, say what came out."""
    github = client(server, clock)
    sticky = GitHubStickyComment(
        github, number=7, key="analytics", monotonic=lambda: clock.passed, now=lambda: TODAY
    )
    sticky.find_comment()
    sticky.publish_body(body("planning", phase="planning", run_id=run_id))
    clock.passed += FRESH_SECONDS + 60
    sticky.publish_body(body("planned", run_id=run_id))
    if note:
        sticky.post_note("The decision is now Review.")


@pytest.mark.parametrize(("others", "pages"), [(0, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_review__first_costs_four_requests_and_two_writes_and_one_more_per_page(
    server: ScriptedServer, clock: Clock, others: int, pages: int
) -> None:
    """The second look reads the last page only: that is where a rival's comment would be."""
    for _ in range(others):
        server.github.add_comment(REPO, 7, "chat", "ada")
    review(server, clock)
    assert [each["body"] for each in server.github.comments(REPO, 7)[others:]] == [body("planned")]
    assert (len(server.requests), len(server.writes)) == (3 + pages, 2)


@pytest.mark.parametrize(("others", "pages"), [(0, 1), (99, 1), (100, 2), (299, 3)])
def test_review__later_costs_five_requests_and_two_writes_and_one_more_per_page(
    server: ScriptedServer, clock: Clock, others: int, pages: int
) -> None:
    for _ in range(others):
        server.github.add_comment(REPO, 7, "chat", "ada")
    server.github.add_comment(REPO, 7, body("old", run_id=90))
    review(server, clock)
    assert server.github.comments(REPO, 7)[-1]["body"] == body("planned")
    assert (len(server.requests), len(server.writes)) == (4 + pages, 2)


def test_review__with_a_changed_decision_costs_six_requests_and_three_writes(
    server: ScriptedServer, clock: Clock
) -> None:
    server.github.add_comment(REPO, 7, body("old", run_id=90))
    review(server, clock, note=True)
    assert (len(server.requests), len(server.writes)) == (6, 3)


def test_review__repeated_pushes_leave_one_comment(server: ScriptedServer, clock: Clock) -> None:
    for run_id in (100, 101, 102):
        review(server, clock, run_id=run_id)
    assert [each["body"] for each in server.github.comments(REPO, 7)] == [
        body("planned", run_id=102)
    ]


def test_sticky__post_in_doubt_leaves_one_comment(server: ScriptedServer, clock: Clock) -> None:
    """Stored, but the answer was lost; and a stranger has pasted the same marker meanwhile."""
    server.github.add_comment(REPO, 7, body("planning", phase="planning"), "mallory")
    server.script.on("POST", LIST, server_error(502, store_first=True))
    review(server, clock)
    forged, mine = server.github.comments(REPO, 7)
    assert forged["body"] == body("planning", phase="planning")
    assert (mine["user"]["login"], mine["body"]) == (ME, body("planned"))


def test_sticky__post_in_doubt_is_recognised_by_its_author_too(
    server: ScriptedServer, clock: Clock
) -> None:
    server.github.add_comment(REPO, 7, body("planned"), "mallory")
    server.script.on("POST", LIST, server_error(502, store_first=True))
    sticky = GitHubStickyComment(
        client(server, clock),
        number=7,
        key="analytics",
        monotonic=lambda: clock.passed,
        now=lambda: TODAY,
    )
    assert sticky.publish_body(body("planned")).comment.author == ME


def test_sticky__read_only_token_of_a_fork_is_refused_with_the_permission(
    server: ScriptedServer, clock: Clock
) -> None:
    server.script.on("POST", LIST, forbidden())
    with pytest.raises(RequestRefused) as caught:
        review(server, clock)
    assert caught.value.reason_code == "missing_permission"


@pytest.mark.parametrize("refused", [forbidden(), Reply(status=404, json={"message": "x"})])
def test_sticky__of_an_app_where_graphql_is_closed__stays_one_comment(
    server: ScriptedServer, clock: Clock, refused: Reply
) -> None:
    """Nobody says who the token is until it has written something; then its older comment is known."""
    server.github.login = "review-app[bot]"
    server.script.on("POST", "/graphql", refused, forever=True)
    for run_id in (100, 101, 102):
        review(server, clock, run_id=run_id)
    (only,) = server.github.comments(REPO, 7)
    assert (only["user"]["login"], only["body"]) == (
        "review-app[bot]",
        body("planned", run_id=102),
    )


@pytest.mark.parametrize("limit", [secondary_limit(None), secondary_limit(60), secondary_limit(6)])
def test_limit_waits__what_can_be_left_out_waits_for_no_rate_limit(
    server: ScriptedServer, clock: Clock, limit: Reply
) -> None:
    github = client(server, clock)
    path = f"{ROOT}/issues/comments/99"
    server.script.on("PATCH", path, limit)
    with pytest.raises(GitHubUnavailable), github.limit_waits(5.0):
        github.update_comment(99, "planning")
    assert [seconds for seconds in clock.slept if seconds > 1] == []
    # Outside it is as patient as before.
    number = server.github.add_comment(REPO, 7, "old")
    server.script.on("PATCH", f"{ROOT}/issues/comments/{number}", limit)
    github.update_comment(number, "planned")
    assert max(clock.slept) >= 6
    assert server.github.comments(REPO, 7)[0]["body"] == "planned"


def test_limit_waits__a_short_wait_is_waited_for(server: ScriptedServer, clock: Clock) -> None:
    number = server.github.add_comment(REPO, 7, "old")
    server.script.on("PATCH", f"{ROOT}/issues/comments/{number}", secondary_limit(2))
    github = client(server, clock)
    with github.limit_waits(5.0):
        github.update_comment(number, "planning")
    assert server.github.comments(REPO, 7)[0]["body"] == "planning"


def test_limit_waits__a_hurry_that_begins_inside_goes_on(
    server: ScriptedServer, clock: Clock
) -> None:
    github = client(server, clock)
    with github.limit_waits(5.0):
        github.hurry_requests()
    assert github._rest.transport.limits is HURRIED
