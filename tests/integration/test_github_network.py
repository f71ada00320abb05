"""A way to GitHub that stays closed until a setting is changed: one try, and the setting."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from github import Consts

from ci_bot.bot.github.client import GitHubClient
from ci_bot.bot.github.urls import VARIABLES
from ci_bot.errors import BadInput, BotError, GitHubUnavailable, RequestRefused
from tests.e2e.job import Job, Runner
from tests.github_standin import events
from tests.github_standin.script import Reply
from tests.github_standin.scripted import ScriptedServer
from tests.github_standin.tls import Authority
from tests.github_standin.wire import Answer, Exchange, LoopbackServer
from tests.integration.github_client_parts import APP, ME, PULL, REPO, ROOT, Clock, client, pull

PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
PAGE = b"<!DOCTYPE html><html><body>Sign in to your account</body></html>"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own proxy and certificates say nothing here."""
    for name in (*VARIABLES, *PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(ME) as started:
        yield started


@contextmanager
def answering(answer: Answer) -> Iterator[LoopbackServer]:
    """A server that gives the same answer to everything."""

    def handle(_: Exchange) -> Answer:
        return answer

    made = LoopbackServer(handle)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def github(url: str, clock: Clock, *, trust: Path | None = None) -> GitHubClient:
    return GitHubClient(
        repository=REPO,
        token=APP,
        api_url=url,
        time=clock.time(),
        trust=str(trust) if trust else None,
    )


def fails(url: str, clock: Clock, *, trust: Path | None = None) -> BadInput:
    """The failure of a request that a setting mends: at once, and without the token in it."""
    with pytest.raises(BadInput) as caught:
        github(url, clock, trust=trust).get_pull(7)
    assert clock.slept == [], "what a setting mends is not tried again"
    assert APP not in f"{caught.value.message} {caught.value.hint}"
    return caught.value


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("verb", ["GET", "PATCH"])
def test_redirect__without_end_is_given_up_at_once(
    server: ScriptedServer, clock: Clock, status: int, verb: str
) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        location = {"Location": f"{server.url}/{there}"}
        server.script.on("*", f"/{here}", Reply(status, headers=location), forever=True)
    first = Reply(status, headers={"Location": f"{server.url}/a"})
    server.script.on(verb, f"{ROOT}/.*", first, forever=True)

    with pytest.raises(RequestRefused, match="redirects elsewhere") as caught:
        if verb == "GET":
            client(server, clock).get_pull(7)
        else:
            client(server, clock).update_comment(1, "text")

    assert "GITHUB_API_URL" in (caught.value.hint or "")
    assert len(server.requests) <= 2
    assert clock.slept == []


def test_accepted__without_end_is_given_up(
    server: ScriptedServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyGithub asks again after a 202, every two seconds, until the answer is another."""
    monkeypatch.setattr(Consts, "PROCESSING_202_WAIT_TIME", 0)
    server.script.on("GET", PULL, Reply(202, json={}), forever=True)

    with pytest.raises(BotError):
        client(server, clock).get_pull(7)

    assert len(server.requests) == 2


def test_certificate__of_an_authority_that_nobody_trusts(
    authority: Authority, clock: Clock
) -> None:
    with ScriptedServer(ME, tls=authority.server()) as server:
        server.github.serve("GET", PULL, pull())
        error = fails(server.url, clock)

        assert server.requests == [], "the token was sent to a server that is not trusted"
        assert github(server.url, clock, trust=authority.bundle).get_pull(7).number == 7

    assert error.reason_code == "untrusted_certificate"
    assert "certificate is not accepted" in error.message
    for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        assert name in (error.hint or "")


def test_certificate__for_another_address_or_of_another_day(
    authority: Authority, clock: Clock
) -> None:
    for wrong, says in (
        (authority.server(address="127.0.0.9"), "mismatch"),
        (authority.server(until=timedelta(days=-1)), "expired"),
    ):
        with ScriptedServer(ME, tls=wrong) as server:
            error = fails(server.url, clock, trust=authority.bundle)
            assert server.requests == []
        assert error.reason_code == "wrong_certificate"
        assert says in error.message


@pytest.mark.parametrize("content", ["", "no certificate\n"])
def test_certificate__a_file_that_holds_none(
    authority: Authority, clock: Clock, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "odd.pem"
    file.write_text(content, encoding="ascii")
    with ScriptedServer(ME, tls=authority.server()) as server:
        error = fails(server.url, clock, trust=file)

    assert error.reason_code == "untrusted_certificate"
    assert "holds none" in error.message


def test_tls__asked_of_a_port_that_speaks_plain_http(clock: Clock) -> None:
    with answering(Answer(400, b"bad request")) as plain:
        error = fails(plain.url.replace("http://", "https://"), clock)

    assert error.reason_code == "no_tls"
    assert "https://HOST/api/v3" in (error.hint or "")


@pytest.mark.parametrize("proxy", ["refuses", "wants a password", "is malformed"])
def test_proxy__that_does_not_serve(
    proxy: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"http://user:secret@127.0.0.1:{unused.getsockname()[1]}"
        with connect_proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as closed:
            address = {"refuses": dead, "wants a password": closed, "is malformed": "http://"}
            monkeypatch.setenv("HTTPS_PROXY", address[proxy])
            error = fails("https://ghes.example/api/v3", clock)

    assert error.reason_code == "proxy_failed"
    assert "HTTPS_PROXY" in (error.hint or "")
    assert "ghes.example into NO_PROXY" in (error.hint or "")
    assert "secret" not in f"{error.message} {error.hint}"


def test_proxy__whose_server_is_away_for_a_moment_is_asked_again(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect_proxy(b"HTTP/1.1 503 Service Unavailable\r\n\r\n") as busy:
        monkeypatch.setenv("HTTPS_PROXY", busy)
        with pytest.raises(GitHubUnavailable):
            github("https://ghes.example/api/v3", clock).get_pull(7)

    assert clock.slept == [1.0, 2.0, 4.0, 8.0]


@contextmanager
def connect_proxy(answer: bytes) -> Iterator[str]:
    """A proxy that gives every CONNECT the same answer; its URL."""
    import threading

    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(timeout=5)


@pytest.mark.parametrize("status", [200, 400, 404, 406, 410])
def test_answer__that_is_a_page_says_where_the_api_is(
    server: ScriptedServer, clock: Clock, status: int
) -> None:
    """What a GitHub Enterprise Server says where its /api/v3 is left out."""
    server.script.on("GET", PULL, Reply(status, body=PAGE))

    with pytest.raises(GitHubUnavailable) as caught:
        client(server, clock).get_pull(7)

    assert "https://HOST/api/v3" in (caught.value.hint or "")
    assert (len(server.requests), clock.slept) == (1, [])


def test_answer__of_bad_credentials_is_asked_for_once(server: ScriptedServer, clock: Clock) -> None:
    server.script.on("GET", PULL, Reply(401, body=PAGE))

    with pytest.raises(BadInput, match="does not accept the token") as caught:
        client(server, clock).get_pull(7)

    assert caught.value.reason_code == "bad_credentials"
    assert len(server.requests) == 1


@pytest.mark.by_day(1)
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", None])
def test_run__trusts_what_the_environment_names(
    authority: Authority, tmp_path: Path, variable: str | None
) -> None:
    with ScriptedServer(ME, tls=authority.server()) as server:
        role = {"permission": "read", "role_name": "read"}
        server.github.serve("GET", f"{ROOT}/collaborators/maintainer/permission", role)
        runner = Runner(api_url=server.url, repository=REPO, token=APP, home=tmp_path / "runner")
        job = Job(
            "issue_comment",
            events.issue_comment("/sqlmesh status"),
            run_id=1,
            variables={variable: str(authority.bundle)} if variable else {},
        )

        outcome = runner.run(job, tmp_path)

        if variable is None:
            assert outcome.outputs["reason-code"] == "untrusted_certificate"
            assert outcome.exit_code == 2
            assert server.requests == []
        else:
            assert outcome.outputs["reason-code"] == "permission", outcome.stdout
            assert server.requests


def test_run__certificates_that_are_not_there_end_it_at_once(tmp_path: Path) -> None:
    runner = Runner(
        api_url="https://ghes.example/api/v3",
        repository=REPO,
        token=APP,
        home=tmp_path / "runner",
    )
    job = Job(
        "issue_comment",
        events.issue_comment("/sqlmesh status"),
        run_id=1,
        variables={"SSL_CERT_FILE": "/nowhere/authority.pem"},
    )

    outcome = runner.run(job, tmp_path)

    assert outcome.exit_code == 2
    assert outcome.outputs["reason-code"] == "no_certificates"
    assert "SSL_CERT_FILE is '/nowhere/authority.pem'" in outcome.errors[0]
