"""Patterns, validators and modules that are made late do what they do otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import dateparser  # type: ignore[import-untyped]
import pytest

from ci_bot.worker.runtime import imports

PROGRAM = """
import json, sys
if sys.argv[1] == "late":
    from ci_bot.worker.runtime.imports import delay_import_work
    delay_import_work()
    import regex
    plain = regex.compile
import dateparser  # type: ignore[import-untyped]
from dateparser import timezone_parser
made = [name for name, zone in timezone_parser._tz_offsets if "search" in vars(zone["regex"])] \\
    if sys.argv[1] == "late" else []
words = ["2024-01-01", "1 week ago", "2024-01-01 10:00 CEST", "10:00 UTC+3", "noon EST", "no date"]
now = {"RELATIVE_BASE": __import__("datetime").datetime(2024, 5, 6)}
found = [str(dateparser.parse(word, settings=now)) for word in words]
kept = [timezone_parser.word_is_tz(word) for word in ("EST", "estate", "+03:00")]
if sys.argv[1] == "late":
    assert regex.compile is plain
print(json.dumps([found, kept, made]))
"""


def told(how: str) -> list[list[object]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    found: list[list[object]] = json.loads(done.stdout)
    return found


def test_late__finds_the_same_and_compiles_nothing_on_import() -> None:
    plain, late = told("plain"), told("late")
    assert late == plain
    assert late[0][2] == "2024-01-01 10:00:00+02:00"
    assert late[2] == []


VALIDATORS = """
import sys
if sys.argv[1] == "late":
    from ci_bot.worker.runtime.imports import delay_import_work
    delay_import_work()
from sqlmesh.core.config import Config
from sqlmesh.core.config.connection import PostgresConnectionConfig, SnowflakeConnectionConfig
made = [record.__pydantic_complete__ for record in (Config, SnowflakeConnectionConfig)]
config = Config.parse_obj(
    {"gateways": {"it": {"connection": {"type": "duckdb"}}}, "model_defaults": {"dialect": "spark"}}
)
try:
    PostgresConnectionConfig(host="db", port="no number")
except Exception as error:
    refused = str(error)
print([made, repr(config), config.dict() == config.copy(deep=True).dict(), refused])
"""


def test_late__validators_accept_and_refuse_the_same() -> None:
    plain, late = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", VALIDATORS, how],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for how in ("plain", "late")
    )
    assert plain.startswith("[[True, True]")
    assert late.startswith("[[False, False]")
    assert late.replace("False", "True", 2) == plain


REQUESTS = """
import os, sys
os.environ["SQLMESH__DISABLE_ANONYMIZED_ANALYTICS"] = "1"
from ci_bot.worker.runtime.imports import delay_import_work
delay_import_work()
if sys.argv[1] == "first":
    import requests
import sqlmesh.core.context
from sqlmesh.core.analytics import dispatcher
from sqlmesh.core.engine_adapter import fabric
made = "requests" in sys.modules
if sys.argv[1] == "project":
    import requests
    from requests.adapters import HTTPAdapter
session = dispatcher.requests.Session()
import requests
assert type(session) is requests.Session
assert fabric.requests.post is requests.post
assert dispatcher.requests.adapters.HTTPAdapter is requests.adapters.HTTPAdapter
print(made)
"""


@pytest.mark.parametrize(("who", "made"), [("sqlmesh", False), ("project", False), ("first", True)])
def test_late__requests_is_imported_when_it_is_used(who: str, made: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REQUESTS, who],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{made}\n"


DATES = """
import sys
from datetime import date, datetime, timezone
if sys.argv[1] == "late":
    from ci_bot.worker.runtime.imports import delay_import_work
    delay_import_work()
from sqlmesh.utils.date import to_datetime
now = datetime(2024, 5, 6, 7, 8, tzinfo=timezone.utc)
days = [date.fromordinal(day).isoformat() for day in range(1, date.max.toordinal(), 29_989)]
times = [f"{day}{gap}23:59:08" for day in days[:40] for gap in "T "]
odd = ["2024-02-29", "2023-02-29", "2024-13-01", "2024-00-10", "2024-1-1", "2024-01-01 24:00:00",
    "2024-01-01 10:00", "2024-01-01T10:00:00Z", "2024-01-01 10:00:00 CEST", "2024-01-01T10:00:00.5",
    "2024-01-01 10:00:00+02:00", " 2024-01-01", "2024-01-01\\\\n", "٢٠٢٤-٠١-٠١", "20240101", "1 week ago"]
for text in (*days, *times, *odd):
    try:
        print(text.strip(), to_datetime(text, relative_base=now))
    except ValueError as error:
        print(error)
"""

ONE_DATE = """
from ci_bot.worker.runtime.imports import delay_import_work
delay_import_work()
import sqlmesh.core.context
from sqlmesh.utils.date import to_datetime
from dateparser import timezone_parser
to_datetime("2024-01-01")
print([name for name, zone in timezone_parser._tz_offsets if "search" in vars(zone["regex"])])
"""


def run_program(program: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_late__dates_are_the_same() -> None:
    plain, late = (run_program(DATES, how) for how in ("plain", "late"))
    assert late == plain
    assert "2024-01-01 10:00:00 CEST 2024-01-01 08:00:00+00:00" in late
    assert "Could not convert `2023-02-29` to datetime." in late


def test_late__a_plain_date_tries_no_time_zone() -> None:
    assert run_program(ONE_DATE) == "[]\n"


NOW = (
    datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=timezone.utc),
    datetime(2026, 1, 1, tzinfo=timezone.utc),
    datetime(1, 1, 3, tzinfo=timezone.utc),
    datetime(2024, 5, 6),
    datetime(2024, 5, 6, tzinfo=timezone(timedelta(hours=2))),
)
AWAY = (
    *("1 week ago", "in 1 week", "0 days ago", "in 0 weeks", "31 days ago", "in 365 days"),
    *("999 weeks ago", "in 2 hours", "1 month ago", "1 Week Ago", "in 1 week ago", "1000 days ago"),
)


@pytest.mark.parametrize("text", AWAY)
@pytest.mark.parametrize("now", NOW, ids=str)
def test_dates_some_days_away__are_those_of_dateparser(text: str, now: datetime) -> None:
    quick = imports._QuickDates(dateparser)
    for more in ({"TIMEZONE": "UTC"}, {"TIMEZONE": "Europe/Berlin"}, {}):
        settings = {"RELATIVE_BASE": now, **more}
        assert quick.parse(text, settings=settings) == dateparser.parse(text, settings=settings)


def test_dates_some_days_away__are_read_without_dateparser() -> None:
    quick = imports._QuickDates(None)
    settings = {"RELATIVE_BASE": NOW[1], "TIMEZONE": "UTC"}
    assert quick.parse("1 week ago", settings=settings) == datetime(2025, 12, 25)
    assert quick.parse("in 2 days", settings=settings) == datetime(2026, 1, 3)
