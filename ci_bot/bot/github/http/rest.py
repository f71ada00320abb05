"""One record, or the records of all pages, from GitHub's REST API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ci_bot.bot.github.http import answers
from ci_bot.bot.github.http.answers import AnswerError
from ci_bot.bot.github.http.failures import unexpected
from ci_bot.bot.github.http.transport import Reply, Transport
from ci_bot.bot.github.port import PER_PAGE

T = TypeVar("T")

_MOST_PAGES = 300
_NEXT = re.compile(r'<[^>]*>\s*;[^,]*\brel="?next"?', re.IGNORECASE)


class Rest:
    """Requests through a transport, with their answers read into records."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def one(
        self,
        verb: str,
        path: str,
        read: Callable[[Any], T],
        doing: str,
        needs: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        resend: bool = True,
    ) -> T:
        reply = self.transport.call(
            verb, path, doing=doing, needs=needs, query=query, body=body, resend=resend
        )
        return _read(reply, read, doing)

    def page(
        self,
        path: str,
        read: Callable[[Any], T],
        doing: str,
        needs: str,
        query: Mapping[str, str | int],
    ) -> tuple[list[T], bool]:
        """The records of one page, and whether there is a next one.

        Only whether the Link header names a next page is believed; the URL in it is not followed.
        """
        reply = self.transport.call("GET", path, doing=doing, needs=needs, query=query)
        records = _read(reply, lambda data: [read(entry) for entry in answers.entries(data)], doing)
        return records, bool(_NEXT.search(reply.headers.get("link", "")))

    def pages(
        self,
        path: str,
        read: Callable[[Any], T],
        doing: str,
        needs: str,
        query: Mapping[str, str | int] | None = None,
        *,
        first_page: int = 1,
    ) -> Iterator[T]:
        before: list[T] = []
        for page in range(first_page, first_page + _MOST_PAGES):
            asked = {**(query or {}), "per_page": PER_PAGE, "page": page}
            records, more = self.page(path, read, doing, needs, asked)
            if records and records == before:
                raise unexpected(doing, "is the same page again and again")
            yield from records
            if not more:
                return
            before = records
        raise unexpected(doing, f"has more than {_MOST_PAGES} pages")


def _read(reply: Reply, read: Callable[[Any], T], doing: str) -> T:
    try:
        return read(reply.data)
    except AnswerError as odd:
        raise unexpected(doing, str(odd)) from None
