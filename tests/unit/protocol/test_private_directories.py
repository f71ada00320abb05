"""No private directory of a run is in anything that people read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.protocol.base import Failure
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.protocol.messages import FailedAnswer
from tests.factories import make_report
from tests.oracle.fuzzing import caught, fuzz

ROOT = Path("/var/run/tmp/ci-bot-k3_x0q")
PLACES = PrivateDirectories(
    {
        ROOT: "",
        ROOT / "repository": "",
        ROOT / "base": "(on the base branch) ",
        ROOT / "overlay": "",
    }
)
DIRECTORIES = st.sampled_from([str(ROOT), *(f"{ROOT}/{n}" for n in ("repository", "base", "tmp"))])
NAMES = st.text("abz09_.- é", min_size=1, max_size=8)
PATHS = st.builds(lambda top, parts: "/".join([top, *parts]), DIRECTORIES, st.lists(NAMES))
WORDS = st.text(max_size=12)
TEXTS = st.lists(st.one_of(PATHS, WORDS), max_size=6).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("from file '{r}/repository/models/a.sql':", "from file 'models/a.sql':"),
        ('File "{r}/base/macros/m.py", line 3', 'File "(on the base branch) macros/m.py", line 3'),
        ("PosixPath('{r}/repository')", "PosixPath('.')"),
        ("in {r}/base.", "in (on the base branch)."),
        ("{r}/base-state.duckdb is locked", "base-state.duckdb is locked"),
        ("file://{r}/repository/a.csv", "file://a.csv"),
        ("{r}/repository/a dir/b.sql", "a dir/b.sql"),
        ("{r}x/repository", "{r}x/repository"),
        ('File "/opt/venv/lib/python3.11/site-packages/sqlmesh/x.py"', 'File "sqlmesh/x.py"'),
        ("/usr/lib/python3/dist-packages/yaml/a.py", "yaml/a.py"),
        ("/usr/local/lib/python3.13/json/decoder.py:3", "json/decoder.py:3"),
        ("/Users/me/data/customers.csv", "/Users/me/data/customers.csv"),
    ],
)
def test_text__of_a_path__begins_where_the_reader_knows_it(text: str, shown: str) -> None:
    assert PLACES.hide_in_text(text.format(r=ROOT)) == shown.format(r=ROOT)


def test_text__of_the_tree_within__has_the_name_of_the_inner_one() -> None:
    places = PrivateDirectories({Path("/w"): "outer ", Path("/w/in"): "inner "})
    assert places.hide_in_text("/w/in/a /w/b") == "inner a outer b"


def leaks(places: PrivateDirectories, text: str) -> bool:
    failure = Failure(stage="load", reason_code="failed", exit_code=1, message=text, hint=text)
    report = make_report(failure=failure, notes=[text[:4_000]])
    answer = FailedAnswer(failure=failure, base_failures=[failure])
    return any(str(ROOT) + "/" in places.hide_in_document(d).to_json() for d in (report, answer))


@fuzz(2_000)
@given(TEXTS)
def test_document__of_any_text__holds_no_private_path(text: str) -> None:
    assert not leaks(PLACES, text)


def test_document__the_property_fails_where_nothing_is_replaced() -> None:
    assert caught(TEXTS, lambda text: leaks(PrivateDirectories({}), text))


def test_document__keeps_every_other_value() -> None:
    report = make_report()
    assert PLACES.hide_in_document(report) == report


@pytest.mark.parametrize(
    "text",
    ["/a" * 4_000_000, ("/a" * 500 + "/lib/python3.1/") * 8_000, "/lib/python3.1/a'" * 10**5],
)
def test_text__made_to_keep_the_search_busy__takes_seconds_at_most(text: str) -> None:
    started = time.monotonic()
    PLACES.hide_in_text(text)
    # What tries every beginning anew would take hours.
    assert time.monotonic() - started < 20
