"""When a request is sent again, and after how long. Pure: times come in, a decision goes out.

PyGithub brings a `GithubRetry` of its own. It is switched off, because a run must end within a
known time (measured with 2.10.0): it sleeps as long as a `Retry-After` header says, an hour if need
be; it does not retry a 429 without that header; and it sends a POST again after a 502, which makes
two comments. What it knows of GitHub's rate limits is kept in `classify`:
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.github.network_faults import NetworkFault

UNAUTHORIZED, FORBIDDEN, REQUEST_TIMEOUT, TOO_MANY, SERVER_ERROR = 401, 403, 408, 429, 500

_RATE_LIMIT_WORDS = (
    "rate limit exceeded",
    "exceeded a secondary rate limit",
    "please retry your request again later",
    "please wait a few minutes before you try again",
    "abuse detection mechanism",
)


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """How patient a client is. All times are seconds.

    Attributes:
        tries: How often a request is sent at most.
        timeout: For a connection, and for each wait for bytes on it; whole seconds.
        first_wait: Before the second try; it doubles from then on.
        secondary_wait: The same where GitHub limits us without saying for how long; it asks for a
            minute then.
        longest_wait: A longer wait is not begun; the request fails and says until when.
        budget: One request, with all its tries and waits.
        between_writes: From the end of one write to the next, as GitHub asks of integrations.
    """

    tries: int = 5
    timeout: int = 15
    first_wait: float = 1.0
    secondary_wait: float = 60.0
    longest_wait: float = 120.0
    budget: float = 180.0
    between_writes: float = 1.0


PATIENT = RateLimits()
# For the last seconds of a cancelled run: the runner gives 7.5 of them.
HURRIED = RateLimits(tries=1, timeout=2, longest_wait=0.0, budget=3.0, between_writes=0.0)

FailureKind = Literal["broken", "limited", "final"]


@dataclass(frozen=True, kw_only=True)
class RequestFailure:
    """An answer that is no success, or no answer at all (`status` is None then).

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
    """Send it again after `wait` seconds."""

    wait: float


@dataclass(frozen=True)
class GiveUp:
    """Give up. `until` is the moment (epoch seconds) at which GitHub takes requests again."""

    until: float | None = None


def classify_failure(failure: RequestFailure) -> FailureKind:
    """What kind of failure this is.

    `broken`: the server or the network; whether the request was carried out is not known.
    `limited`: a rate limit; the request was not carried out. `final`: asking again is pointless.
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


def decide_retry(
    failure: RequestFailure,
    *,
    tries: int,
    spent: float,
    now: float,
    jitter: float,
    limits: RateLimits,
) -> RetryAfter | GiveUp:
    """Whether to send a failed request again.

    Args:
        failure: What happened.
        tries: How often the request was sent so far.
        spent: Seconds since it was sent for the first time.
        now: The time of day, in epoch seconds.
        jitter: From 0 up to 1; spreads the waits of runs that fail together.
        limits: How patient to be.
    """
    kind = classify_failure(failure)
    if kind == "final":
        return GiveUp()
    wait = asked = _read_requested_wait(failure, now)
    if wait is None:
        step = limits.secondary_wait if kind == "limited" else limits.first_wait
        wait = step * 2.0 ** (tries - 1) * (1 + jitter / 2)
    if tries >= limits.tries or wait > limits.longest_wait or spent + wait > limits.budget:
        return GiveUp(None if asked is None else now + asked)
    return RetryAfter(wait)


def _read_requested_wait(failure: RequestFailure, now: float) -> float | None:
    """The seconds that GitHub names itself, at least one; None if it names none."""
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
        classify_failure(failure) == "limited"
        and failure.headers.get("x-ratelimit-remaining") == "0"
        and reset.isascii()
        and reset.isdigit()
        and len(reset) <= 12  # noqa: PLR2004 - else it is no time of this age
    ):
        return max(float(reset) - now, 0.0) + 1.0  # which part of that second is not known
    return None
