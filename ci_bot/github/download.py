"""The one request that leaves the API's host: an artifact, from where GitHub's storage has it.

GitHub answers a download with a redirect to a signed URL on a storage host of its choosing, so this
request carries no token, no cookie and no credentials of any kind, follows no further redirect, and
reads no more than it was told to.
"""

from __future__ import annotations

from collections.abc import Callable

from ci_bot.errors import GitHubUnavailable, Refused
from ci_bot.github.failures import unexpected
from ci_bot.github.urls import safe_download_url

_CHUNK = 65_536
_OK = 200


def download(
    url: str,
    *,
    doing: str,
    max_bytes: int,
    timeout: float,
    monotonic: Callable[[], float],
    budget: float,
) -> bytes:
    """The body at a signed URL.

    Args:
        url: Where GitHub said that it is; https, or http on a loopback address.
        doing: What this is for, for error messages.
        max_bytes: A longer body is refused.
        timeout: Seconds for the connection and for each wait for bytes.
        monotonic: A clock, against which `budget` seconds in all are counted.
        budget: Seconds in all.

    Raises:
        Refused: The body is too long, or the URL is not one to ask.
        GitHubUnavailable: It did not come.
    """
    import requests

    if not safe_download_url(url):
        raise unexpected(doing, "points to a place that is not asked")
    started = monotonic()
    body = bytearray()
    try:
        with requests.Session() as session:
            session.auth = lambda request: request  # else a .netrc file could add credentials
            session.headers["Accept-Encoding"] = "identity"  # so that what is counted is all of it
            with session.get(url, stream=True, timeout=timeout, allow_redirects=False) as answer:
                if answer.status_code != _OK:
                    raise GitHubUnavailable(
                        f"The bot could not {doing}: the storage answered with status "
                        f"{answer.status_code}.",
                        hint="Run the job again.",
                    )
                for chunk in answer.iter_content(_CHUNK):
                    body += chunk
                    if len(body) > max_bytes:
                        raise Refused(
                            f"The artifact is larger than {max_bytes} bytes.",
                            hint="It is not a report that this action made.",
                            reason_code="artifact_refused",
                        )
                    if monotonic() - started > budget:
                        raise GitHubUnavailable(
                            f"The bot could not {doing} within {budget:.0f} s.",
                            hint="Run the job again.",
                        )
    except OSError:
        raise GitHubUnavailable(
            f"The bot could not {doing}: the connection to the storage failed.",
            hint="Run the job again.",
        ) from None
    return bytes(body)
