"""Faults of GitHub and of the network, with real PyGithub: what is sent again, and when."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from email.utils import format_datetime

import pytest

from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.github.failures import HURRIED, PATIENT, GitHubRateLimits
from ci_bot.bot.github.port import NotFound
from ci_bot.errors import BadInput, BotError, GitHubUnavailable, RequestRefused
from tests.github_standin.script import (
    Reply,
    connection_reset,
    forbidden,
    primary_limit,
    secondary_limit,
    server_error,
    silence,
    too_many_requests,
)
from tests.github_standin.scripted import ScriptedServer
from tests.integration.github_client_parts import (
    APP,
    LIST,
    ME,
    NOW,
    PULL,
    REPO,
    ROOT,
    Clock,
    client,
    named,
    pull,
    scripted_github,
)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_github() as started:
        yield started


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        (server_error(500), [1.0]),
        (server_error(502), [1.0]),
        (server_error(503), [1.0]),
        (server_error(504), [1.0]),
        (connection_reset(), [1.0]),
        (too_many_requests(1), [1.0]),
        (too_many_requests(30), [30.0]),
        (too_many_requests(), [60.0]),
        (secondary_limit(5), [5.0]),
        (secondary_limit(None), [60.0]),
        (primary_limit(int(NOW) + 20), [21.0]),
        (Reply(status=503, headers={"Retry-After": "9"}), [9.0]),
        (
            Reply(
                status=429,
                headers={
                    "Retry-After": format_datetime(
                        datetime.datetime.fromtimestamp(NOW + 12, datetime.UTC), usegmt=True
                    )
                },
            ),
            [12.0],
        ),
    ],
    ids=named,
)
@pytest.mark.parametrize("verb", ["GET", "PATCH", "DELETE"])
def test_fault__that_passes_is_waited_for(
    server: ScriptedServer, clock: Clock, verb: str, fault: Reply, waits: list[float]
) -> None:
    number = server.github.add_comment(REPO, 7, "old")
    server.script.on(verb, f"{ROOT}/issues/comments/{number}", fault)
    github = client(server, clock)
    match verb:
        case "GET":
            assert github.get_comment(number).body == "old"
        case "PATCH":
            assert github.update_comment(number, "new").body == "new"
        case "DELETE":
            github.delete_comment(number)
            assert server.github.comments(REPO, 7) == []
    assert clock.slept == waits
    assert len(server.requests) == 2


def test_fault__silence_is_a_timeout(server: ScriptedServer, clock: Clock) -> None:
    server.github.serve("GET", PULL, pull())
    server.script.on("GET", PULL, silence())
    assert client(server, clock, limits=GitHubRateLimits(timeout=1)).get_pull(7).number == 7
    assert clock.slept == [1.0]


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (forbidden(), RequestRefused, "lacks the permission `pull-requests: write`"),
        (
            forbidden("Must have admin rights to Repository."),
            RequestRefused,
            "lacks the permission",
        ),
        (
            forbidden("Unable to create comment because issue is locked."),
            RequestRefused,
            "is locked",
        ),
        (Reply(status=401, json={"message": "Bad credentials"}), BadInput, "the token"),
        (Reply(status=422, json={"message": "Validation Failed"}), BotError, "Validation Failed"),
        (Reply(status=404, json={"message": "Not Found"}), NotFound, "finds nothing"),
        (too_many_requests(3600), GitHubUnavailable, "until 2026-08-17 21:53 UTC"),
        (primary_limit(int(NOW) + 1800), GitHubUnavailable, "until 2026-08-17 21:23 UTC"),
    ],
    ids=named,
)
@pytest.mark.parametrize("verb", ["POST", "PATCH"])
def test_fault__that_does_not_pass_fails_at_once(
    server: ScriptedServer,
    clock: Clock,
    *,
    verb: str,
    fault: Reply,
    kind: type[BotError],
    words: str,
) -> None:
    number = server.github.add_comment(REPO, 7, "old")
    path = LIST if verb == "POST" else f"{ROOT}/issues/comments/{number}"
    server.script.on(verb, path, fault)
    github = client(server, clock)
    with pytest.raises(kind) as caught:
        if verb == "POST":
            github.create_comment(7, "new")
        else:
            github.update_comment(number, "new")
    assert words in caught.value.message
    assert caught.value.hint
    assert clock.slept == []
    assert len(server.requests) == 1


def test_fault__that_lasts_ends_within_the_budget(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("GET", PULL, server_error(503), forever=True)
    with pytest.raises(GitHubUnavailable, match="answered with status 503"):
        client(server, clock).get_pull(7)
    assert clock.slept == [1.0, 2.0, 4.0, 8.0]
    assert len(server.requests) == PATIENT.tries


def test_fault__hurried_client_tries_once(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("PATCH", ".*", server_error())
    with pytest.raises(GitHubUnavailable):
        client(server, clock, limits=HURRIED).update_comment(1, "cancelled")
    assert (clock.slept, len(server.requests)) == ([], 1)


def test_fault__no_server_at_all(clock: Clock) -> None:
    with ScriptedServer(ME) as gone:
        url = gone.url
    github = GitHubClient(repository=REPO, token=APP, api_url=url, time=clock.time())
    with pytest.raises(GitHubUnavailable, match=r"127\.0\.0\.1:\d+ did not answer"):
        github.get_pull(7)


def test_fault__failures_show_neither_token_nor_a_library_s_words(
    server: ScriptedServer, clock: Clock
) -> None:
    server.script.on("GET", PULL, connection_reset(), forever=True)
    github = client(server, clock)
    with pytest.raises(GitHubUnavailable) as caught:
        github.get_pull(7)
    shown = f"{caught.value.message} {caught.value.hint} {vars(github)!r}"
    assert APP not in shown
    assert "HTTPConnectionPool" not in shown
    assert "the connection failed" in caught.value.message


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("where", ["https://elsewhere.example/x", "http://127.0.0.2:1/x", "/x", ""])
def test_redirect__elsewhere_is_refused(
    server: ScriptedServer, clock: Clock, status: int, where: str
) -> None:
    server.script.on("GET", PULL, Reply(status=status, json={}, headers={"Location": where}))
    with pytest.raises(RequestRefused, match="the token must not follow"):
        client(server, clock).get_pull(7)
    assert len(server.requests) == 1


def test_redirect__of_a_renamed_repository_on_the_same_host_is_followed(
    server: ScriptedServer, clock: Clock
) -> None:
    location = {"Location": f"{server.url}/repositories/1/pulls/7"}
    server.script.on("GET", PULL, Reply(status=301, json={}, headers=location))
    server.github.serve("GET", "/repositories/1/pulls/7", pull())
    assert client(server, clock).get_pull(7).number == 7


def test_redirect__between_two_hosts_leaves_the_second_without_a_request(
    server: ScriptedServer, clock: Clock
) -> None:
    with ScriptedServer(ME) as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost") + "/x"
        for status in (301, 302, 307):
            server.script.on("PATCH", ".*", Reply(status=status, headers={"Location": elsewhere}))
            with pytest.raises(RequestRefused):
                client(server, clock).update_comment(1, "secret")
        assert other.requests == []


@pytest.mark.parametrize("token", ["", "ghs_\n", "two words", "gh\u00e9", " "])
def test_client__needs_a_whole_token(clock: Clock, token: str) -> None:
    with pytest.raises(BadInput, match="token is empty or broken"):
        GitHubClient(
            repository=REPO, token=token, api_url="https://api.github.com", time=clock.time()
        )


@pytest.mark.parametrize("repository", ["", "flights", "octo/flights/x", "octo/..", "octo/a b"])
def test_client__needs_a_repository(clock: Clock, repository: str) -> None:
    with pytest.raises(BadInput, match="not owner/name"):
        GitHubClient(
            repository=repository, token=APP, api_url="https://api.github.com", time=clock.time()
        )
