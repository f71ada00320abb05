"""What of a structured value is a secret by itself, however it is wrapped."""

from __future__ import annotations

import base64
import json

import pytest

from ci_bot.redaction.known_secrets import LARGEST, find_secret_parts
from tests.unit.redaction.leaks import made

PASSWORD = made("part", 20)
TOKEN = made("token-part", 40)


def nested(depth: int) -> str:
    value: object = {"password": PASSWORD}
    for _ in range(depth):
        value = {"inner": value}
    return json.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        f'{{"user": "bot", "password": "{PASSWORD}"}}',
        f'[{{"name": "a"}}, {{"password": "{PASSWORD}"}}]',
        f'{{"passwords": ["{PASSWORD}", 7]}}',
        base64.b64encode(f'{{"password": "{PASSWORD}"}}'.encode()).decode(),
        base64.urlsafe_b64encode(f'{{"password": "{PASSWORD}"}}'.encode()).decode().rstrip("="),
        f"host=db user=bot password='{PASSWORD}' sslmode=require",
        f'user: bot\npassword: "{PASSWORD}"',
        f"conninfo='host=db password={PASSWORD}'",
        f"options=password={PASSWORD}",
        f"db.password {PASSWORD}",
        f"machine db login bot password {PASSWORD}",
        f"postgresql://bot:{PASSWORD}@db/state",
        nested(3),
    ],
)
def test_parts__a_password_is_found_wherever_it_stands(value: str) -> None:
    assert PASSWORD in find_secret_parts(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        PASSWORD,  # is its own only part, and known as a whole
        '{"user": "bot", "port": 5432, "tls": true}',
        "{not json",
        '{"password": true}',
        "A" * 41,  # looks like base64 and is none
        base64.b64encode(b"\xff\xfe" * 30).decode(),
        "host=db user=bot sslmode=require",
        "postgresql://bot@db/state",
        "spark.app.name retail",
    ],
)
def test_parts__what_holds_no_more_than_itself_has_none(value: str) -> None:
    assert find_secret_parts(value) == set()


def test_parts__a_number_counts_where_its_name_says_so() -> None:
    assert find_secret_parts('{"pin": 1, "password": 48219753}') == {"48219753"}


def test_parts__what_only_looks_random_counts_where_the_value_is_somebodys_secret() -> None:
    value = f'{{"thing": "{TOKEN}"}}'
    assert find_secret_parts(value) == {TOKEN}
    assert find_secret_parts(value, also_random=False) == set()
    assert TOKEN in find_secret_parts(f"https://{TOKEN}@host/repository")


def test_parts__end_where_a_value_is_a_file_or_has_no_end() -> None:
    assert find_secret_parts(f'{{"password": "{PASSWORD}"}}' + " " * LARGEST) == set()
    assert find_secret_parts(nested(40)) == set()
