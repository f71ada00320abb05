"""GitHub's failures: why there was no answer, when to try again, and a text for people. Pure.

The exceptions of `requests` wrap those of urllib3, and these wrap those of Python; the innermost
one is the reason. A lost connection may be back in a second. But if a certificate is not trusted,
or a proxy or a host name does not exist, this stays so until somebody changes a setting. In these
cases no request is repeated.

PyGithub has a `GithubRetry` of its own. It is switched off, because a run must end within a known
time (measured with 2.10.0). It sleeps as long as a `Retry-After` header says, even an hour; it does
not retry a 429 without that header; and it sends a POST again after a 502, which makes two
comments. `classify_github_failure` knows the same about GitHub's rate limits:
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from ci_bot.bot.github.port import NotFound, RejectedContent
from ci_bot.errors import BadInput, BotError, GitHubUnavailable, RequestRefused

NetworkFault = Literal[
    "lost", "untrusted_certificate", "wrong_certificate", "no_tls", "proxy", "unknown_host", "url"
]

# OpenSSL's reasons for an answer that is no TLS record; the reason depends on OpenSSL's version.
_NO_TLS = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "HTTPS_PROXY_REQUEST",
        "UNKNOWN_PROTOCOL",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
    }
)
# X509_V_ERR_*: the certificate is for another name or address, or it is expired or not yet valid.
# To trust another certificate authority changes nothing about these.
_NOT_OF_THIS_SERVER = frozenset({9, 10, 62, 64})
_NO_SUCH_NAME = frozenset(
    code
    for code in (getattr(socket, name, None) for name in ("EAI_NONAME", "EAI_NODATA"))
    if code is not None
)
_PROXY = frozenset({"ProxyError", "InvalidProxyURL", "ProxySchemeUnknown"})
_URL = frozenset({"InvalidURL", "InvalidSchema", "MissingSchema", "LocationParseError"})
# The proxy's message about a failure of the server behind it, which may pass.
_BEHIND_THE_PROXY = re.compile(r"Tunnel connection failed: 5\d\d")


@dataclass(frozen=True)
class GitHubNetworkTrouble:
    """The reason for no answer; `kind` says what helps: patience if it is `lost`, else a setting.

    `words` are for people; the libraries' own texts contain URLs and addresses of objects.
    """

    kind: NetworkFault
    words: str


def classify_network_error(error: BaseException) -> GitHubNetworkTrouble:
    """Returns why a request ended in `error`."""
    causes = list(_iterate_causes(error))
    names = {kind.__name__ for cause in causes for kind in type(cause).__mro__}
    if names & _PROXY or "SOCKS" in str(error):
        behind = any(_BEHIND_THE_PROXY.search(str(cause)) for cause in causes)
        return GitHubNetworkTrouble("lost" if behind else "proxy", "the proxy failed")
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            return _classify_tls_error(cause)
        if isinstance(cause, socket.gaierror) and cause.errno in _NO_SUCH_NAME:
            return GitHubNetworkTrouble("unknown_host", "its name is not known")
    if names & _URL:
        return GitHubNetworkTrouble("url", "its address cannot be read")
    for name, words in (
        ("ConnectTimeout", "no connection in time"),
        ("ReadTimeout", "no answer in time"),
    ):
        if name in names:
            return GitHubNetworkTrouble("lost", words)
    return GitHubNetworkTrouble("lost", "the connection failed")


def _classify_tls_error(error: ssl.SSLError) -> GitHubNetworkTrouble:
    if isinstance(error, ssl.SSLCertVerificationError):
        kind: NetworkFault = "untrusted_certificate"
        if error.verify_code in _NOT_OF_THIS_SERVER:
            kind = "wrong_certificate"
        return GitHubNetworkTrouble(
            kind, f"its certificate is not accepted: {error.verify_message}"
        )
    if "X509" in str(error):
        return GitHubNetworkTrouble(
            "untrusted_certificate", "the file of trusted certificates holds none"
        )
    if error.reason in _NO_TLS:
        return GitHubNetworkTrouble("no_tls", "it answers without TLS")
    return GitHubNetworkTrouble("lost", "the secure connection failed")


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yields `error` and all errors that caused it, the outermost first, each once."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = (getattr(one, "reason", None), one.__cause__, one.__context__, *one.args)
        waiting += [each for each in inner if isinstance(each, BaseException)]


UNAUTHORIZED, FORBIDDEN, REQUEST_TIMEOUT, TOO_MANY, SERVER_ERROR = 401, 403, 408, 429, 500

_RATE_LIMIT_WORDS = (
    "rate limit exceeded",
    "exceeded a secondary rate limit",
    "please retry your request again later",
    "please wait a few minutes before you try again",
    "abuse detection mechanism",
)


@dataclass(frozen=True, kw_only=True)
class GitHubRateLimits:
    """The patience of a client. All times are in seconds.

    Attributes:
        tries: The most times that a request is sent.
        timeout: For a connection, and for each wait for bytes on it; whole seconds.
        first_wait: The wait before the second try; it doubles from then on.
        secondary_wait: The same wait if GitHub limits us and does not say for how long; GitHub asks
            for a minute then.
        longest_wait: A longer wait is not begun; the request fails, and the error says until when.
        budget: The time for one request, with all its tries and waits.
        between_writes: The pause between two writes, as GitHub asks of integrations.
    """

    tries: int = 5
    timeout: int = 15
    first_wait: float = 1.0
    secondary_wait: float = 60.0
    longest_wait: float = 120.0
    budget: float = 180.0
    between_writes: float = 1.0


PATIENT = GitHubRateLimits()
# For the last seconds of a cancelled run: the runner allows 7.5 of them.
HURRIED = GitHubRateLimits(tries=1, timeout=2, longest_wait=0.0, budget=3.0, between_writes=0.0)

FailureKind = Literal["broken", "limited", "final"]


@dataclass(frozen=True, kw_only=True)
class GitHubRequestFailure:
    """An answer that is no success, or no answer (then `status` is None).

    `headers` have lower-case names. `message` is GitHub's, or the network error's. `network` says
    why there was no answer. `is_api` is False if the answer cannot be one of GitHub's API.
    """

    status: int | None
    message: str
    headers: Mapping[str, str]
    network: NetworkFault = "lost"
    is_api: bool = True


@dataclass(frozen=True)
class RetryAfter:
    """The decision to send the request again after `wait` seconds."""

    wait: float


@dataclass(frozen=True)
class GiveUp:
    """The decision to give up. At `until` (epoch seconds) GitHub accepts requests again."""

    until: float | None = None


def classify_github_failure(failure: GitHubRequestFailure) -> FailureKind:
    """Returns the kind of a failure.

    `broken`: the server or the network failed; whether the request was carried out is not known.
    `limited`: a rate limit; the request was not carried out. `final`: another try would not help.
    """
    if failure.status is None and failure.network != "lost":
        return "final"
    if failure.status in (None, REQUEST_TIMEOUT) or failure.status >= SERVER_ERROR:
        return "broken"
    if failure.status == TOO_MANY:
        return "limited"
    if failure.status == FORBIDDEN and (
        "retry-after" in failure.headers
        or failure.headers.get("x-ratelimit-remaining") == "0"
        or any(words in failure.message.lower() for words in _RATE_LIMIT_WORDS)
    ):
        return "limited"
    return "final"


def decide_retry_of_github_request(
    failure: GitHubRequestFailure,
    *,
    tries: int,
    spent: float,
    now: float,
    jitter: float,
    limits: GitHubRateLimits,
) -> RetryAfter | GiveUp:
    """Decides whether to send a failed request again.

    Args:
        failure: The answer, or why there was none.
        tries: How many times the request has been sent.
        spent: Seconds since it was first sent.
        now: The time of day, in epoch seconds.
        jitter: A number from 0 up to 1; it spreads the waits of runs that fail together.
        limits: The patience of the client.
    """
    kind = classify_github_failure(failure)
    if kind == "final":
        return GiveUp()
    wait = requested_wait = _read_requested_wait(failure, now)
    if wait is None:
        step = limits.secondary_wait if kind == "limited" else limits.first_wait
        wait = step * 2.0 ** (tries - 1) * (1 + jitter / 2)
    if tries >= limits.tries or wait > limits.longest_wait or spent + wait > limits.budget:
        return GiveUp(None if requested_wait is None else now + requested_wait)
    return RetryAfter(wait)


def _read_requested_wait(failure: GitHubRequestFailure, now: float) -> float | None:
    """Returns the seconds that GitHub asks us to wait, at least one; None if it names no time."""
    text = failure.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) <= 9:  # noqa: PLR2004 - more than 30 years
        return max(float(text), 1.0)
    if text:
        try:
            return max(email.utils.parsedate_to_datetime(text).timestamp() - now, 1.0)
        except (ValueError, OverflowError, OSError):
            pass
    reset = failure.headers.get("x-ratelimit-reset", "").strip()
    if (
        classify_github_failure(failure) == "limited"
        and failure.headers.get("x-ratelimit-remaining") == "0"
        and reset.isascii()
        and reset.isdigit()
        and len(reset) <= 12  # noqa: PLR2004 - otherwise it is no time of our age
    ):
        return max(float(reset) - now, 0.0) + 1.0  # the moment within that second is not known
    return None


_WHEN_GITHUB_IS_WELL = "Run the job again when GitHub is well."
_LONGEST = 200
_API_URL = (
    "GITHUB_API_URL names the API: https://HOST/api/v3 on GitHub Enterprise Server, "
    "https://api.github.com otherwise."
)
# What fixes a network failure that does not pass; `{host}` is the host of the request.
_SETTINGS: dict[NetworkFault, tuple[str, str]] = {
    "untrusted_certificate": (
        "untrusted_certificate",
        "Put the certificate authority of {host} into a file below the workspace, which is what "
        "the container sees, and name it in the step's `env:` as REQUESTS_CA_BUNDLE or "
        "SSL_CERT_FILE.",
    ),
    "wrong_certificate": (
        "wrong_certificate",
        "Its administrator has to renew the certificate, or GITHUB_API_URL names another host than "
        "the certificate does.",
    ),
    "no_tls": ("no_tls", "Name the port that speaks https. " + _API_URL),
    "proxy": (
        "proxy_failed",
        "HTTPS_PROXY names the proxy; correct it, or put {host} into NO_PROXY if it is reached "
        "without one.",
    ),
    "unknown_host": ("unknown_host", "Correct the name, or the runner's DNS. " + _API_URL),
    "url": ("bad_api_url", _API_URL),
}


def make_github_error(  # noqa: PLR0911 - one return per kind of failure
    failure: GitHubRequestFailure, *, doing: str, needs: str, host: str, until: float | None = None
) -> BotError:
    """Makes the error for a request that is given up.

    Args:
        failure: The last answer.
        doing: What the bot tried, to follow "could not": `write the comment`.
        needs: The workflow permission for it: `pull-requests: write`.
        host: The API's host, for failures of the network.
        until: When GitHub accepts requests again (epoch seconds); None if it did not say so.
    """
    kind = classify_github_failure(failure)
    if kind == "limited":
        return _make_rate_limit_error(doing, until)
    if failure.status is None:
        return make_unreachable_github_error(
            failure.network, failure.message, doing=doing, host=host
        )
    if kind == "broken":
        return GitHubUnavailable(
            f"The bot could not {doing}: {host} answered with status {failure.status}.",
            hint=_WHEN_GITHUB_IS_WELL,
        )
    if not failure.is_api and failure.status != UNAUTHORIZED:
        return make_unexpected_github_answer_error(
            doing, f"(status {failure.status}) does not belong to GitHub's API"
        )
    server_text = clean_text_of_github_server(failure.message)
    match failure.status:
        case 401:
            return BadInput(
                f"GitHub does not accept the token, so the bot could not {doing}.",
                hint="Give the action `github-token: ${{ github.token }}`, or a valid token.",
                reason_code="bad_credentials",
            )
        case 403 if "locked" in server_text.lower():
            return RequestRefused(
                f"The bot could not {doing}: the conversation is locked.",
                hint="Unlock the conversation, or read the report in the step summary.",
                reason_code="conversation_locked",
            )
        case 403:
            return RequestRefused(
                f"The token may not {doing}: it lacks the permission `{needs}`.",
                hint=f"Add `{needs}` under `permissions:` of the job. GitHub says: {server_text}",
                reason_code="missing_permission",
            )
        case 404 | 410:
            return NotFound(
                f"The bot could not {doing}: GitHub finds nothing there.",
                hint=(
                    f"Check the number or the name. GitHub also answers this way where the token "
                    f"lacks `{needs}`."
                ),
            )
        case status if status is not None and 300 <= status < 400:  # noqa: PLR2004 - HTTP's 3xx
            return RequestRefused(
                f"The bot could not {doing}: GitHub redirects elsewhere, and the token must not "
                "follow.",
                hint="The repository may have been renamed; run the job again then. " + _API_URL,
                reason_code="redirected",
            )
    return RejectedContent(
        f"GitHub refused to {doing} (status {failure.status}): {server_text}",
        hint="This looks like a defect of the bot; please report it with the log of this run.",
        said=server_text,
    )


def make_unexpected_github_answer_error(doing: str, what: str) -> GitHubUnavailable:
    """Makes the error for an answer that reports success but makes no sense."""
    return GitHubUnavailable(
        f"The bot could not {doing}: GitHub's answer {what}.",
        hint="Run the job again; if it fails again, another server than GitHub answers. "
        + _API_URL,
        reason_code="github_unexpected",
    )


def make_unreachable_github_error(
    network: NetworkFault, words: str, *, doing: str, host: str
) -> BotError:
    """Makes the error for a request without an answer, with the setting that fixes it, if any.

    Args:
        network: Why there is no answer.
        words: The same in words for people.
        doing: What the bot tried, to follow "could not".
        host: The host of the request.
    """
    message = (
        f"The bot could not {doing}: {host} did not answer ({clean_text_of_github_server(words)})."
    )
    if network == "lost":
        return GitHubUnavailable(message, hint=_WHEN_GITHUB_IS_WELL)
    reason_code, hint = _SETTINGS[network]
    return BadInput(message, hint=hint.format(host=host), reason_code=reason_code)


def clean_text_of_github_server(text: str) -> str:
    """Returns a server's text as one short line without characters that act on a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _make_rate_limit_error(doing: str, until: float | None) -> GitHubUnavailable:
    when = "for a while" if until is None else f"until {_format_epoch(until)}"
    return GitHubUnavailable(
        f"The bot could not {doing}: GitHub's rate limit holds {when}.",
        hint="Run the job again after that.",
        reason_code="rate_limited",
    )


def _format_epoch(epoch: float) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch, timezone.utc):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return "a time far away"
