"""Why no answer came, when to ask again, and the words for failures: tables of times and decisions.

The reasons are read from the libraries' own exceptions. Which certificates count is tried, too.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3.connection import HTTPSConnection
from urllib3.connectionpool import HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    LocationParseError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
)
from urllib3.exceptions import SSLError as WrappedError

from ci_bot.bot.github.failures import (
    HURRIED,
    PATIENT,
    GitHubRateLimits,
    GitHubRequestFailure,
    GiveUp,
    NetworkFault,
    RetryAfter,
    classify_github_failure,
    classify_network_error,
    clean_text_of_github_server,
    decide_retry_of_github_request,
    make_github_error,
    make_unreachable_github_error,
)
from ci_bot.bot.github.port import NotFound, RejectedContent
from ci_bot.bot.github.urls import (
    VARIABLES,
    check_github_api_url,
    find_certificates_for_github,
    is_safe_github_download_url,
)
from ci_bot.errors import BadInput, GitHubUnavailable, RequestRefused

HOST = "ghes.example"
POOL = HTTPSConnectionPool(HOST)
CONNECTION = HTTPSConnection(HOST)


def failed(reason: Exception) -> requests.ConnectionError:
    """A request that urllib3 gave up for `reason`, as `requests` raises it."""
    return requests.ConnectionError(MaxRetryError(POOL, "/api/v3", reason))


def certificate(code: int, words: str) -> requests.exceptions.SSLError:
    inner = ssl.SSLCertVerificationError(1, f"certificate verify failed: {words}")
    inner.verify_code, inner.verify_message = code, words
    return requests.exceptions.SSLError(MaxRetryError(POOL, "/", WrappedError(inner)))


def tls(reason: str) -> requests.exceptions.SSLError:
    inner = ssl.SSLError(1, f"[SSL: {reason}]")
    inner.reason = reason
    return requests.exceptions.SSLError(MaxRetryError(POOL, "/", WrappedError(inner)))


def unknown(code: int) -> Exception:
    cause = socket.gaierror(code, "no such name")
    error = NameResolutionError(HOST, CONNECTION, cause)
    error.__cause__ = cause
    return error


def proxied(reason: Exception) -> requests.exceptions.ProxyError:
    wrapped = ProxyError("Unable to connect to proxy", reason)
    return requests.exceptions.ProxyError(MaxRetryError(POOL, "/", wrapped))


REFUSED = NewConnectionError(CONNECTION, "refused")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (failed(REFUSED), "lost"),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "lost"),
        (requests.ConnectTimeout(), "lost"),
        (requests.ReadTimeout(), "lost"),
        (requests.exceptions.ChunkedEncodingError("cut off"), "lost"),
        # The resolver does not answer, which it may do later; or it says that there is no such name.
        (failed(unknown(socket.EAI_AGAIN)), "lost"),
        (failed(unknown(socket.EAI_NONAME)), "unknown_host"),
        (certificate(18, "self-signed certificate"), "untrusted_certificate"),
        (certificate(19, "self-signed certificate in certificate chain"), "untrusted_certificate"),
        (certificate(20, "unable to get local issuer certificate"), "untrusted_certificate"),
        (certificate(10, "certificate has expired"), "wrong_certificate"),
        (certificate(62, "Hostname mismatch"), "wrong_certificate"),
        (certificate(64, "IP address mismatch"), "wrong_certificate"),
        (tls("WRONG_VERSION_NUMBER"), "no_tls"),
        (tls("HTTP_REQUEST"), "no_tls"),
        (tls("UNEXPECTED_EOF_WHILE_READING"), "lost"),
        (proxied(REFUSED), "proxy"),
        (proxied(ConnectTimeoutError("no answer of the proxy")), "proxy"),
        (proxied(unknown(socket.EAI_NONAME)), "proxy"),
        (proxied(OSError("Tunnel connection failed: 407 Proxy Authentication Required")), "proxy"),
        (proxied(OSError("Tunnel connection failed: 403 Forbidden")), "proxy"),
        # The proxy is there and says that the server behind it is not.
        (proxied(OSError("Tunnel connection failed: 503 Service Unavailable")), "lost"),
        (requests.exceptions.InvalidProxyURL("malformed"), "proxy"),
        (requests.exceptions.InvalidSchema("Missing dependencies for SOCKS support."), "proxy"),
        (requests.exceptions.InvalidURL("no host"), "url"),
        (LocationParseError("a..b"), "url"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_trouble__is_what_mends_it(error: Exception, kind: NetworkFault) -> None:
    found = classify_network_error(error)

    assert found.kind == kind
    assert "object at 0x" not in found.words
    assert HOST not in found.words


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("untrusted_certificate", ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "below the workspace")),
        ("wrong_certificate", ("GITHUB_API_URL", "renew")),
        ("no_tls", ("GITHUB_API_URL", "https://HOST/api/v3")),
        ("proxy", ("HTTPS_PROXY", f"put {HOST} into NO_PROXY")),
        ("unknown_host", ("GITHUB_API_URL", "DNS")),
        ("url", ("GITHUB_API_URL",)),
    ],
)
def test_unreachable__names_the_setting(kind: NetworkFault, setting: tuple[str, ...]) -> None:
    error = make_unreachable_github_error(kind, "because", doing="write a comment", host=HOST)

    assert isinstance(error, BadInput)
    assert error.message == f"The bot could not write a comment: {HOST} did not answer (because)."
    for words in setting:
        assert words in (error.hint or "")


def test_unreachable__a_lost_connection_needs_no_setting() -> None:
    error = make_unreachable_github_error("lost", "because", doing="write a comment", host=HOST)

    assert isinstance(error, GitHubUnavailable)
    assert "again" in (error.hint or "")


def test_trusted__the_first_variable_that_is_set(tmp_path: Path) -> None:
    files = {}
    for name in VARIABLES:
        path = tmp_path / name
        path.mkdir() if name == "SSL_CERT_DIR" else path.touch()
        files[name] = str(path)

    assert find_certificates_for_github({}) is None
    assert find_certificates_for_github(dict.fromkeys(VARIABLES, " ")) is None
    while files:
        assert find_certificates_for_github(files) == next(iter(files.values()))
        files.pop(next(iter(files)))


@pytest.mark.parametrize("name", VARIABLES)
def test_trusted__what_is_not_there_is_said_at_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{name} is '{tmp_path}/none'") as caught:
        find_certificates_for_github({name: f"{tmp_path}/none"})
    assert "below the workspace" in (caught.value.hint or "")


NOW = 1_787_000_000.0  # 2026-08-17 20:53:20 UTC


def failure(
    status: int | None, message: str = "", headers: Mapping[str, str] | None = None
) -> GitHubRequestFailure:
    return GitHubRequestFailure(status=status, message=message, headers=headers or {})


def after(
    given_failure: GitHubRequestFailure,
    *,
    tries: int = 1,
    spent: float = 0.0,
    limits: GitHubRateLimits = PATIENT,
) -> RetryAfter | GiveUp:
    return decide_retry_of_github_request(
        given_failure, tries=tries, spent=spent, now=NOW, jitter=0.0, limits=limits
    )


LIMITED = {"x-ratelimit-remaining": "0"}


@pytest.mark.parametrize(
    ("status", "message", "headers", "kind"),
    [
        (None, "no answer in time", {}, "broken"),
        (500, "", {}, "broken"),
        (502, "", {}, "broken"),
        (503, "", {"retry-after": "1"}, "broken"),
        (504, "", {}, "broken"),
        (408, "", {}, "broken"),
        (429, "", {}, "limited"),
        (403, "API rate limit exceeded for installation ID 1.", {}, "limited"),
        (403, "You have exceeded a secondary rate limit.", {}, "limited"),
        (403, "Please wait a few minutes before you try again.", {}, "limited"),
        (403, "Forbidden", {"retry-after": "30"}, "limited"),
        (403, "Forbidden", LIMITED, "limited"),
        (403, "Resource not accessible by integration", {}, "final"),
        (403, "Resource not accessible by integration", {"x-ratelimit-remaining": "9"}, "final"),
        (400, "", {}, "final"),
        (401, "Bad credentials", {}, "final"),
        (404, "Not Found", {}, "final"),
        (422, "Validation Failed", {}, "final"),
        (301, "", {}, "final"),
    ],
)
def test_classify__table(
    status: int | None, message: str, headers: dict[str, str], kind: str
) -> None:
    assert classify_github_failure(failure(status, message, headers)) == kind


@pytest.mark.parametrize(
    ("what", "tries", "step"),
    [
        # A server or network that fails: 1, 2, 4, 8 seconds, then the end.
        (failure(502), 1, RetryAfter(1)),
        (failure(502), 2, RetryAfter(2)),
        (failure(None), 4, RetryAfter(8)),
        (failure(None), 5, GiveUp()),
        # What GitHub asks for is what is waited, and never nothing.
        (failure(503, headers={"retry-after": "7"}), 1, RetryAfter(7)),
        (failure(429, headers={"retry-after": "1"}), 1, RetryAfter(1)),
        (failure(429, headers={"retry-after": "0"}), 1, RetryAfter(1)),
        (failure(403, headers={"retry-after": "120"}), 1, RetryAfter(120)),
        (failure(403, headers={"retry-after": "121"}), 1, GiveUp(NOW + 121)),
        (failure(429, headers={"retry-after": "3600"}), 1, GiveUp(NOW + 3600)),
        (
            failure(429, headers={"retry-after": "Mon, 17 Aug 2026 20:53:50 GMT"}),
            1,
            RetryAfter(30),
        ),
        # A header that is nonsense is as none: a minute, as GitHub asks then, and no second one.
        (failure(429, headers={"retry-after": "soon"}), 1, RetryAfter(60)),
        (failure(429, headers={"retry-after": "٣"}), 1, RetryAfter(60)),
        (failure(429), 1, RetryAfter(60)),
        (failure(403, "secondary rate limit: exceeded a secondary rate limit"), 1, RetryAfter(60)),
        # The primary limit: until its reset and a second, if that is near.
        (
            failure(403, headers={**LIMITED, "x-ratelimit-reset": f"{NOW + 9:.0f}"}),
            1,
            RetryAfter(10),
        ),
        (
            failure(403, headers={**LIMITED, "x-ratelimit-reset": f"{NOW - 9:.0f}"}),
            1,
            RetryAfter(1),
        ),
        (
            failure(403, headers={**LIMITED, "x-ratelimit-reset": f"{NOW + 1800:.0f}"}),
            1,
            GiveUp(NOW + 1801),
        ),
        # What does not get better is not sent again.
        (failure(403, "Resource not accessible by integration"), 1, GiveUp()),
        (failure(401), 1, GiveUp()),
        (failure(404), 1, GiveUp()),
        (failure(422), 1, GiveUp()),
    ],
)
def test_decide__table(what: GitHubRequestFailure, tries: int, step: RetryAfter | GiveUp) -> None:
    assert after(what, tries=tries) == step


def test_decide__keeps_the_budget() -> None:
    assert after(failure(502), tries=2, spent=177) == RetryAfter(2)
    assert after(failure(502), tries=2, spent=179) == GiveUp()
    assert after(failure(429, headers={"retry-after": "100"}), spent=100) == GiveUp(NOW + 100)


def test_decide__hurried_does_not_wait() -> None:
    assert after(failure(502), limits=HURRIED) == GiveUp()
    assert after(failure(429, headers={"retry-after": "1"}), limits=HURRIED) == GiveUp(NOW + 1)


HEADERS = st.dictionaries(
    st.sampled_from(["retry-after", "x-ratelimit-reset", "x-ratelimit-remaining"]),
    st.text(max_size=20) | st.integers().map(str) | st.sampled_from(["0", "-5", "1e400", "٣"]),
)


FAILURES = st.builds(
    GitHubRequestFailure,
    status=st.none() | st.integers(300, 599),
    message=st.text(max_size=20),
    headers=HEADERS,
)


@settings(max_examples=500, deadline=None)
@given(FAILURES, st.integers(1, 9), st.floats(0, 500), st.floats(0, 1, exclude_max=True))
def test_decide__every_wait_is_within_bounds(
    what: GitHubRequestFailure, tries: int, spent: float, jitter: float
) -> None:
    step = decide_retry_of_github_request(
        what, tries=tries, spent=spent, now=NOW, jitter=jitter, limits=PATIENT
    )
    if isinstance(step, RetryAfter):
        assert tries < PATIENT.tries
        assert 1 <= step.wait <= PATIENT.longest_wait
        assert spent + step.wait <= PATIENT.budget


@pytest.mark.parametrize(
    ("what", "kind", "reason", "words"),
    [
        (failure(401, "Bad credentials"), BadInput, "bad_credentials", "does not accept the token"),
        (
            failure(403, "Resource not accessible by integration"),
            RequestRefused,
            "missing_permission",
            "lacks the permission `pull-requests: write`",
        ),
        (failure(403, "Issue is locked"), RequestRefused, "conversation_locked", "is locked"),
        (failure(404, "Not Found"), NotFound, "not_found", "finds nothing there"),
        (failure(410, "Gone"), NotFound, "not_found", "finds nothing there"),
        (failure(422, "body is too long"), RejectedContent, "github_rejected", "body is too long"),
        (failure(301), RequestRefused, "redirected", "the token must not follow"),
        (failure(307), RequestRefused, "redirected", "the token must not follow"),
        (failure(502), GitHubUnavailable, "github_unavailable", "answered with status 502"),
        (
            failure(None, "no answer in time"),
            GitHubUnavailable,
            "github_unavailable",
            "api.x did not answer (no answer in time)",
        ),
        (failure(429), GitHubUnavailable, "rate_limited", "rate limit holds for a while"),
    ],
)
def test_to_error__words_and_kind(
    what: GitHubRequestFailure, kind: type, reason: str, words: str
) -> None:
    error = make_github_error(
        what, doing="write the comment", needs="pull-requests: write", host="api.x"
    )
    assert type(error) is kind
    assert error.reason_code == reason
    assert words in error.message
    assert "write the comment" in error.message
    assert error.hint


def test_to_error__rate_limit_says_until_when() -> None:
    error = make_github_error(failure(429), doing="x", needs="y", host="z", until=NOW + 3600)
    assert "until 2026-08-17 21:53 UTC" in error.message
    assert (
        "far away"
        in make_github_error(failure(429), doing="x", needs="y", host="z", until=1e300).message
    )


def test_to_error__permission_hint_says_where_it_goes() -> None:
    error = make_github_error(
        failure(403, "Resource not accessible"), doing="x", needs="actions: write", host="z"
    )
    assert error.hint is not None
    assert "Add `actions: write` under `permissions:`" in error.hint
    assert "Resource not accessible" in error.hint


@given(st.text(max_size=500))
def test_plain__is_one_short_visible_line(text: str) -> None:
    line = clean_text_of_github_server(text)
    assert line.isprintable()
    assert len(line) <= 200


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "https://github.example/api/v3",
        "http://127.0.0.1:8080",
        "http://localhost:1",
        "http://[::1]:9",
    ],
)
def test_safe_api_url__takes(url: str) -> None:
    assert check_github_api_url(url + "/") == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.github.com",
        "http://api.github.com",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "https://user:word@api.github.com",
        "https://api.github.com?x=1",
        "https://api.github.com#x",
        "https://",
        "https://[::1",
        "https://api.github.com:99999",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
    ],
)
def test_safe_api_url__refuses_what_a_token_must_not_go_to(url: str) -> None:
    with pytest.raises(BadInput, match="API's URL"):
        check_github_api_url(url)


def test_safe_download_url__takes_queries_but_no_plain_http() -> None:
    assert is_safe_github_download_url("https://storage.example/a?sig=x")
    assert is_safe_github_download_url("http://127.0.0.1:9/a?sig=x")
    assert not is_safe_github_download_url("http://storage.example/a")
    assert not is_safe_github_download_url("")
