"""How reports write models, files and times."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from sqlmesh.utils.date import (
    is_date,
    make_exclusive,
    now_timestamp,
    to_datetime,
    to_timestamp,
)

from ci_bot.errors import BadInput
from ci_bot.protocol.base import make_readable_path
from ci_bot.redaction import quote_value

_QUOTE = '[`"]?'


class Versioned(Protocol):
    """A snapshot with a version, or what the state keeps of one."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | None: ...

    @property
    def dev_version(self) -> str: ...

    def table_name(self, is_deployable: bool = True) -> str:
        """Its physical table."""
        ...


class ModelNames:
    """Model names as people write them: without quotes, and without the default catalog.

    Only this class names models, in changes, findings, sentences and the ledger. Models of another
    catalog keep their catalog, so no two models share a name.
    """

    def __init__(self, default_catalog: str | None, dialect: str | None) -> None:
        self._prefix = f"{default_catalog}." if default_catalog else ""
        catalog = re.escape(default_catalog or "")
        # Not inside of another name, and not at the beginning of a literal.
        self._inside = re.compile(
            rf"(?<![\w.`\"']){_QUOTE}{catalog}{_QUOTE}\.(?=[\w`\"])", re.IGNORECASE
        )
        self._tables: dict[tuple[str, str | None, str, bool], str] = {}

    def short_name(self, fqn: str) -> str:
        """Returns the short name of a fully qualified one: `"cat"."db"."t"` is `db.t`."""
        name = fqn.replace('"', "").replace("`", "")
        # SQLMesh lists the tables that a query reads in lower case, whatever the catalog's case.
        same = name[: len(self._prefix)].lower() == self._prefix.lower()
        return name[len(self._prefix) :] if same else name

    def table_name(self, snapshot: Versioned, *, deployable: bool) -> str:
        """Returns the short name of a snapshot's physical table; `deployable`: the one that prod
        reuses.

        A report names each up to eight times, and SQLMesh parses and writes SQL for it each time.
        """
        key = (snapshot.name, snapshot.version, snapshot.dev_version, deployable)
        if key not in self._tables:
            self._tables[key] = self.short_name(snapshot.table_name(deployable))
        return self._tables[key]

    def shorten_in_text(self, text: str) -> str:
        """Shortens the model names in a text, SQL or ours."""
        return self._inside.sub("", text) if self._prefix else text


def file_name(path: Path, repository: Path) -> str:
    """Returns a file relative to the repository, or its whole path if it lies elsewhere."""
    inside = path.is_relative_to(repository)
    return make_readable_path(str(path.relative_to(repository)) if inside else str(path))


def name_file_or_last_part(path: Path | str | None, repository: Path) -> str | None:
    """Returns a file relative to the repository, or its last part if it lies elsewhere; None for
    None.
    """
    if path is None:
        return None
    path = Path(path)
    return file_name(path, repository) if path.is_relative_to(repository) else path.name


# Conversions between SQLMesh's milliseconds, users' words, and ISO 8601 in UTC.


# Data is from these years; other years are typing errors, or dates that overflow.
_YEARS = range(1900, 2201)


def format_iso(moment: Any) -> str:
    """Formats a moment (milliseconds since the epoch, or anything SQLMesh takes) as ISO 8601 in
    UTC.
    """
    when = to_datetime(moment).astimezone(timezone.utc)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{when.microsecond:06d}Z" if when.microsecond else f"{text}Z"


def to_milliseconds(moment: Any) -> int:
    """Returns a moment as milliseconds since the epoch."""
    return int(to_timestamp(moment))


def read_milliseconds_now() -> int:
    return int(now_timestamp())


def start_of_day(moment: int) -> int:
    """Returns the midnight (UTC) at or before a moment; milliseconds in and out."""
    return moment - moment % 86_400_000


def parse_start(text: str, *, relative_to: int, name: str = "start") -> int:
    """Parses a user's start (`2024-01-01`, `1 week ago`), in milliseconds; inclusive.

    Args:
        relative_to: The moment that `1 week ago` counts from, in milliseconds.
        name: Its name in messages.

    Raises:
        BadInput: it is not a date.
    """
    return int(_parse_time(name, text, relative_to).timestamp() * 1000)


def parse_end(text: str, *, relative_to: int) -> int:
    """Parses a user's end, in milliseconds; exclusive.

    A day without a time means that whole day, as everywhere in SQLMesh, so it ends at the next
    midnight.
    """
    parsed = _parse_time("end", text, relative_to)
    if is_date(text):
        parsed = make_exclusive(text)  # at most one day more, which the bounds leave room for
    return int(parsed.timestamp() * 1000)


def _parse_time(name: str, text: str, relative_to: int) -> datetime:
    try:
        moment: datetime = to_datetime(text, relative_base=to_datetime(relative_to))
    except Exception as error:
        raise _make_date_error(name, text, "which is not a date") from error
    if moment.year not in _YEARS:
        years = f"{_YEARS.start} to {_YEARS.stop - 1}"
        raise _make_date_error(name, text, f"which is none of the years {years}")
    return moment


def _make_date_error(name: str, text: str, why: str) -> BadInput:
    return BadInput(
        f"`{name}` is {quote_value(text)}, {why}.",
        hint="Write a date such as 2024-01-31, a timestamp, or words such as `1 week ago`.",
        reason_code="bad_date",
    )
