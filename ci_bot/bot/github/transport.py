"""One request to GitHub's API: sent, waited for, sent again, or turned into an error of ours.

It is the only module that uses PyGithub. PyGithub's `Requester` does the connection, the
authentication, proxies, GitHub Enterprise's path prefix, and the refusal to follow a redirect to
another host. Its higher objects are not used: they fetch more than we need (a pull request before
its comments, a user before a permission), and a review may cost six requests in total.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ci_bot.bot.github.failures import (
    HURRIED,
    PATIENT,
    GitHubRateLimits,
    GitHubRequestFailure,
    GiveUp,
    classify_github_failure,
    classify_network_error,
    decide_retry_of_github_request,
    make_github_error,
    make_unexpected_github_answer_error,
)
from ci_bot.bot.github.urls import check_github_api_url
from ci_bot.bot.sandbox import SandboxDeadline
from ci_bot.errors import BadInput, GitHubUnavailable
from ci_bot.host import Machine

if TYPE_CHECKING:
    from github.Requester import Requester


# PyGithub's connection to one host, with a limit to the requests that PyGithub itself adds.
#
# PyGithub follows a redirect on the same host, and repeats a GET that is answered with 202, as long
# as the server answers so: hundreds of requests, until Python's stack is full. It takes a
# connection for each call, so this connection counts its requests.


# The request, and one more if the repository was renamed.
MOST_REQUESTS = 2


class EndlessError(Exception):
    """The error if a server has redirected or repeated a call too often."""


class GitHubConnection:
    """A connection in PyGithub's sense: `request`, then `getresponse`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._sent = 0

    def copy_for_one_call(self) -> Any:
        """Returns itself, with no request counted yet.

        PyGithub's annotations allow only two classes of its own.
        """
        self._sent = 0
        return self

    def request(self, *arguments: Any, **options: Any) -> None:
        """Prepares a request.

        Raises:
            EndlessError: the call has used all its requests.
        """
        if self._sent == MOST_REQUESTS:
            raise EndlessError
        self._sent += 1
        self._inner.request(*arguments, **options)

    def getresponse(self) -> Any:
        return self._inner.getresponse()

    def close(self) -> None:
        self._inner.close()


class LateJwtFinder(MetaPathFinder):
    """Delays the import of PyJWT until it is used, which saves its 9 MB of cryptography.

    PyGithub imports it, and uses it only to sign in as a GitHub App.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == "jwt" else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def delay_import_of_jwt() -> Iterator[None]:
    """Delays the import of PyJWT by an import of PyGithub within."""
    finder = LateJwtFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def open_github_connection(api_url: str, timeout: int, trust: str | None) -> GitHubConnection:
    """Makes a connection to the API's host; sends nothing yet.

    Args:
        api_url: A URL that `check_github_api_url` has allowed.
        timeout: Seconds for the connection, and for each wait for bytes.
        trust: A file or directory of certificates to trust instead of the usual ones.
    """
    with delay_import_of_jwt():
        from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

    parts = urlsplit(api_url)
    kind = HTTPSRequestsConnectionClass if parts.scheme == "https" else HTTPRequestsConnectionClass
    inner = kind(parts.hostname or "", parts.port, timeout=timeout, verify=trust or True)
    return GitHubConnection(inner)


API_VERSION = "2022-11-28"
GRAPHQL = "graphql"  # instead of a path: its place depends on the server
_NO_JSON = object()

_REDIRECT, _CLIENT_ERROR = 300, 400


@dataclass(frozen=True)
class GitHubClientTime:
    """The clocks, the sleep and the random numbers of a client, so that tests need not wait.

    Attributes:
        now: The time of day in epoch seconds.
        monotonic: Seconds that never go back.
        sleep: Waits for a number of seconds.
        jitter: A random number from 0 up to 1.
        before_request: Called before each request; raises if the run has no time for it.
    """

    now: Callable[[], float]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    before_request: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class GitHubReply:
    """A successful answer. `headers` have lower-case names, `data` is the JSON or None."""

    status: int
    headers: Mapping[str, str]
    data: Any


class UnclearWrite(GitHubUnavailable):
    """The error for a failed write if it is not known whether GitHub carried it out."""


class GitHubTransport:
    """Requests to one API host.

    Args:
        api_url: `GITHUB_API_URL`; https, or http on a loopback address.
        token: The token. It is given to PyGithub, and kept nowhere else.
        agent: The User-Agent header, which GitHub demands.
        time: Clocks and sleep.
        limits: The patience of the client.
        trust: A file or directory of certificates to trust instead of the usual ones.

    Raises:
        BadInput: There is no token, or the URL is not one that a token may be sent to.
    """

    def __init__(
        self,
        *,
        api_url: str,
        token: str,
        agent: str,
        time: GitHubClientTime,
        limits: GitHubRateLimits = PATIENT,
        trust: str | None = None,
    ) -> None:
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise BadInput(
                "The GitHub token is empty or broken.",
                hint="Give the action `github-token: ${{ github.token }}`.",
                reason_code="bad_credentials",
            )
        self._api_url = check_github_api_url(api_url)
        self._host = urlsplit(self._api_url).netloc
        # A closure, not a partial: its printed form does not show the token.
        self._start: Callable[[], Requester] = lambda: _make_github_requester(
            self._api_url, token, agent, self.limits
        )
        self._requester: Requester | None = None
        self._connection: GitHubConnection | None = None
        self._last_write: float | None = None
        self.time = time
        self.limits = limits
        self.trust = trust

    def send_request(
        self,
        verb: str,
        path: str,
        *,
        doing: str,
        needs: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        resend: bool = True,
        redirect: bool = False,
    ) -> GitHubReply:
        """Sends a request until it succeeds or the limits end it; returns the answer.

        Args:
            verb: GET, POST, PATCH or DELETE.
            path: From the API's root, with a slash in front, and with all its parts quoted.
            doing, needs: For error messages: what this is for, and the permission for it.
            query, body: Parameters of the URL, and the JSON to send.
            resend: Whether to send it twice is harmless. If not, a failure with an unknown outcome
                raises `UnclearWrite` at once; it waits for a rate limit in both cases.
            redirect: Whether the caller wants to see a redirect.

        Raises:
            BotError: one of those named in `ci_bot.bot.github.port`.
        """
        started = self.time.monotonic()
        tries = 0
        while True:
            self.time.before_request()
            if verb != "GET":
                self._keep_writes_apart()
            outcome = self._send_once(verb, path, query, body, redirect=redirect)
            tries += 1
            if verb != "GET":
                self._last_write = self.time.monotonic()
            if isinstance(outcome, GitHubRequestFailure):
                self._wait_or_raise(outcome, tries, started, doing, needs, resend=resend)
            elif outcome.data is _NO_JSON:
                raise make_unexpected_github_answer_error(doing, "is not JSON")
            else:
                return outcome

    def hurry_requests(self) -> None:
        """Hurries from now on, for the last seconds of a cancelled run: one try, a short wait."""
        self.limits = HURRIED
        self._requester = self._connection = None

    @contextmanager
    def limit_waits(self, seconds: float) -> Iterator[None]:
        """Sends each request inside at most twice, and begins no wait longer than `seconds`."""
        usual = self.limits
        limited = self.limits = replace(
            usual, tries=min(usual.tries, 2), longest_wait=min(usual.longest_wait, seconds)
        )
        try:
            yield
        finally:
            if self.limits is limited:  # unless `hurry_requests` was called meanwhile
                self.limits = usual

    def pause_between_tries(self, tries: int) -> None:
        """Waits as long as after the given number of failed tries."""
        limits = self.limits
        wait = limits.first_wait * 2.0 ** (tries - 1) * (1 + self.time.jitter() / 2)
        self.time.sleep(min(wait, limits.longest_wait))

    def _wait_or_raise(
        self,
        failure: GitHubRequestFailure,
        tries: int,
        started: float,
        doing: str,
        needs: str,
        *,
        resend: bool,
    ) -> None:
        if classify_github_failure(failure) == "broken" and not resend:
            error = make_github_error(failure, doing=doing, needs=needs, host=self._host)
            raise UnclearWrite(error.message, hint=error.hint)
        step = decide_retry_of_github_request(
            failure,
            tries=tries,
            spent=self.time.monotonic() - started,
            now=self.time.now(),
            jitter=self.time.jitter(),
            limits=self.limits,
        )
        if isinstance(step, GiveUp):
            raise make_github_error(
                failure, doing=doing, needs=needs, host=self._host, until=step.until
            )
        self.time.sleep(step.wait)

    def _keep_writes_apart(self) -> None:
        if self._last_write is None:
            return
        wait = self._last_write + self.limits.between_writes - self.time.monotonic()
        if wait > 0:
            self.time.sleep(wait)

    def _send_once(
        self,
        verb: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: Mapping[str, Any] | None,
        *,
        redirect: bool,
    ) -> GitHubReply | GitHubRequestFailure:
        from urllib3.exceptions import HTTPError

        if self._requester is None or self._connection is None:
            self._requester = self._start()
            self._connection = open_github_connection(
                self._api_url, self.limits.timeout, self.trust
            )
        if path == GRAPHQL:
            path = self._requester.graphql_url
        try:
            status, headers, text = self._requester.requestJson(
                verb,
                path,
                parameters=dict(query or {}),
                input=None if body is None else dict(body),
                cnx=self._connection.copy_for_one_call(),
            )
        except (OSError, HTTPError) as error:  # every exception of `requests` is an OSError
            why = classify_network_error(error)
            return GitHubRequestFailure(
                status=None, message=why.words, headers={}, network=why.kind
            )
        # PyGithub raises RuntimeError for a redirect to another host or protocol; EndlessError is
        # ours.
        except (RuntimeError, EndlessError):
            return GitHubRequestFailure(status=301, message="", headers={})
        data = _parse_github_json(text)
        lower = {name.lower(): value for name, value in headers.items()}
        last = _CLIENT_ERROR if redirect else _REDIRECT
        if status < last:
            return GitHubReply(status, lower, data)
        message = data.get("message") if isinstance(data, dict) else None
        return GitHubRequestFailure(
            status=status,
            message=message if isinstance(message, str) else "",
            headers=lower,
            is_api=data is not _NO_JSON,
        )


def _make_github_requester(
    api_url: str, token: str, agent: str, limits: GitHubRateLimits
) -> Requester:
    with delay_import_of_jwt():
        from github import Auth, Github

    return Github(
        base_url=api_url,
        auth=Auth.Token(token),
        user_agent=agent,
        timeout=limits.timeout,
        per_page=100,
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=None,
        api_version=API_VERSION,
    ).requester


def _parse_github_json(text: str) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON


# The clocks and the patience of a GitHub client whose run has a deadline.


_DOING = "while GitHub was asked"


def make_github_client_time(machine: Machine, deadline: SandboxDeadline) -> GitHubClientTime:
    """Makes the clocks of a client: it begins no request and no wait without time for it.

    A run that is out of time can still report that; see `SandboxDeadline.check_report`.
    """

    def sleep_in_time(seconds: float) -> None:
        deadline.check_report(_DOING, wait=seconds)
        machine.sleep(seconds)

    return GitHubClientTime(
        now=lambda: machine.utc_now().timestamp(),
        monotonic=machine.monotonic,
        sleep=sleep_in_time,
        jitter=machine.jitter,
        before_request=lambda: deadline.check_report(_DOING),
    )
