"""Why no answer came, read from the libraries' own exceptions, and which certificates count."""

from __future__ import annotations

import errno
import socket
import ssl
from pathlib import Path

import pytest
import requests
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

from ci_bot.bot.github.failures import make_unreachable_error
from ci_bot.bot.github.network_faults import NetworkFault, classify_network_error
from ci_bot.bot.github.urls import VARIABLES, find_trusted_certificates
from ci_bot.errors import BadInput, GitHubUnavailable

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
    error = make_unreachable_error(kind, "because", doing="write a comment", host=HOST)

    assert isinstance(error, BadInput)
    assert error.message == f"The bot could not write a comment: {HOST} did not answer (because)."
    for words in setting:
        assert words in (error.hint or "")


def test_unreachable__a_lost_connection_needs_no_setting() -> None:
    error = make_unreachable_error("lost", "because", doing="write a comment", host=HOST)

    assert isinstance(error, GitHubUnavailable)
    assert "again" in (error.hint or "")


def test_trusted__the_first_variable_that_is_set(tmp_path: Path) -> None:
    files = {}
    for name in VARIABLES:
        path = tmp_path / name
        path.mkdir() if name == "SSL_CERT_DIR" else path.touch()
        files[name] = str(path)

    assert find_trusted_certificates({}) is None
    assert find_trusted_certificates(dict.fromkeys(VARIABLES, " ")) is None
    while files:
        assert find_trusted_certificates(files) == next(iter(files.values()))
        files.pop(next(iter(files)))


@pytest.mark.parametrize("name", VARIABLES)
def test_trusted__what_is_not_there_is_said_at_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{name} is '{tmp_path}/none'") as caught:
        find_trusted_certificates({name: f"{tmp_path}/none"})
    assert "below the workspace" in (caught.value.hint or "")
