"""PyGithub's connection to one host, with an end to what PyGithub asks of it by itself.

PyGithub follows a redirect on the same host, and repeats a GET that is answered with 202, for as
long as the server goes on: hundreds of requests, until Python's stack is full. It takes a
connection for each call, so this one counts.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

# The request, and one more for a repository that was renamed.
MOST_REQUESTS = 2


class EndlessError(Exception):
    """The server has sent a call elsewhere once more than it may."""


class Connection:
    """What PyGithub calls a connection: `request`, then `getresponse`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._sent = 0

    def for_one_call(self) -> Any:
        """Itself, with nothing sent yet. PyGithub's annotations allow two classes of its own."""
        self._sent = 0
        return self

    def request(self, *arguments: Any, **options: Any) -> None:
        """Prepares a request; raises EndlessError where the call has had its share."""
        if self._sent == MOST_REQUESTS:
            raise EndlessError
        self._sent += 1
        self._inner.request(*arguments, **options)

    def getresponse(self) -> Any:
        return self._inner.getresponse()

    def close(self) -> None:
        self._inner.close()


def connect(api_url: str, timeout: int, trust: str | None) -> Connection:
    """A connection to the API's host; nothing is sent yet.

    Args:
        api_url: A URL that `safe_api_url` has let through.
        timeout: Seconds for the connection, and for each wait for bytes.
        trust: A file or directory of certificates to trust instead of the usual ones.
    """
    from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

    parts = urlsplit(api_url)
    kind = HTTPSRequestsConnectionClass if parts.scheme == "https" else HTTPRequestsConnectionClass
    inner = kind(parts.hostname or "", parts.port, timeout=timeout, verify=trust or True)
    return Connection(inner)
