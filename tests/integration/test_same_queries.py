"""`ci-bot same` on a laptop, with the real worker."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ci_bot.bot.cli.compared_queries import LARGEST_QUERY, compare_queries_on_laptop
from ci_bot.bot.report import Format
from ci_bot.errors import BadInput
from ci_bot.host import make_process_machine

SCHEMA = "- name: db.orders\n  columns: {id: int, amount: int, tax: int, status: string}\n"
BASE = "SELECT id, amount + tax % 2 AS total FROM db.orders WHERE status <> 'open'"


def compare(
    directory: Path,
    base: str | bytes | None,
    head: str | bytes | None,
    schema: str | None = SCHEMA,
    form: Format = "terminal",
) -> tuple[int, str]:
    """The exit code, and what is printed, without line ends in the terminal's form."""
    for name, content in {"base.sql": base, "head.sql": head, "schema.yaml": schema}.items():
        if content is not None:
            raw = content if isinstance(content, bytes) else content.encode()
            (directory / name).write_bytes(raw)
    out = io.StringIO()
    code = compare_queries_on_laptop(
        replace(make_process_machine(), directory=directory, out=out, log=io.StringIO()),
        base="base.sql",
        head="head.sql",
        schema="schema.yaml" if schema is not None else None,
        timeout_minutes=5,
        form=form,
    )
    text = out.getvalue()
    return code, text if form == "json" else " ".join(text.split())


def test_same__is_what_is_proved_and_was_tried(tmp_path: Path) -> None:
    head = "SELECT o.id, tax % 2 + o.amount AS total FROM db.orders o WHERE NOT status = 'open'"
    code, told = compare(tmp_path, BASE, head)
    assert code == 0
    assert told.startswith("The same")
    assert "It is proved that both give the same rows, and" in told
    assert "generated data sets did not tell them apart." in told


def test_same__a_model_file_is_compared_by_its_query(tmp_path: Path) -> None:
    head = f"MODEL (name db.m, kind VIEW, cron '@hourly', dialect spark);\n\n{BASE};\n"
    code, told = compare(tmp_path, BASE, head, schema=None)
    assert (code, told) == (0, "The same ──────── Spark gets the same text for both.")


def test_differs__shows_the_rows_that_tell_them_apart(tmp_path: Path) -> None:
    code, told = compare(tmp_path, BASE, BASE.replace("amount + tax % 2", "(amount + tax) % 2"))
    assert code == 1
    assert "db.orders id amount tax status" in told
    assert "id total before" in told
    assert "All values are generated; none comes from a table." in told


def test_differs__in_its_columns(tmp_path: Path) -> None:
    code, told = compare(tmp_path, BASE, BASE.replace("id,", "id AS order_id,"))
    assert code == 1
    assert "They give different columns: only the first one has" in told


def test_differs__as_json(tmp_path: Path) -> None:
    code, text = compare(tmp_path, BASE, f"{BASE} AND id > 1", form="json")
    found = json.loads(text)
    assert (code, found["verdict"]) == (1, "differs")
    assert found["example"]["outputs"][0]["after"] is None


@pytest.mark.parametrize(
    ("head", "schema", "reason"),
    [
        (f"{BASE} AND id > 1", None, "can list the columns of db.orders"),
        (BASE.replace("id,", "my_function(id) AS id,"), SCHEMA, "because of"),
        (
            BASE.replace("amount + tax % 2", "amount + tax % 2 + crc32(status) * 0"),
            SCHEMA,
            "because of",
        ),
    ],
)
def test_not_known__says_why(tmp_path: Path, head: str, schema: str | None, reason: str) -> None:
    code, told = compare(tmp_path, BASE, head, schema)
    assert code == 3
    assert told.startswith("Not known")
    assert reason in told


@pytest.mark.parametrize(
    ("base", "head", "schema", "told"),
    [
        (None, BASE, SCHEMA, "'base.sql' cannot be read: no such file or directory."),
        (BASE, b"\xff\xfe\x00", SCHEMA, "'head.sql' cannot be read: it is no text in UTF-8."),
        (BASE, "", SCHEMA, "`head.sql` cannot be compared: it has no SQL."),
        (BASE, "-- nothing", SCHEMA, "`head.sql` cannot be compared: it has no SQL."),
        (
            *(BASE, f"{BASE};\n{BASE}", SCHEMA),
            "`head.sql` cannot be compared: it has 2 statements, and one query is compared.",
        ),
        (
            *(BASE, "DROP TABLE db.orders", SCHEMA),
            "`head.sql` cannot be compared: its statement is no query.",
        ),
        (
            *(BASE, "SELECT FROM WHERE (", SCHEMA),
            "`head.sql` cannot be compared: it cannot be read as SQL:",
        ),
        (
            *(BASE, "SELECT MAP(id) FROM db.orders", SCHEMA),  # on which the parser itself fails
            "`head.sql` cannot be compared: it cannot be read as SQL:",
        ),
        (
            *(BASE, f"MODEL (name a.b, dialect duckdb);\n{BASE}", SCHEMA),
            "`head.sql` cannot be compared: its dialect is duckdb, and Spark's is compared.",
        ),
        (
            *(BASE, f"{BASE} -- {'x' * 10_000_000}", SCHEMA),
            f"'head.sql' cannot be read: it has more than {LARGEST_QUERY:,} characters.",
        ),
        (
            *(BASE, BASE.replace("id,", "@my_macro(id) AS id,"), SCHEMA),
            "`head.sql` cannot be compared: SQLMesh does not take its query:",
        ),
        (BASE, BASE, "{", "`schema.yaml` is no schema: it is not YAML."),
        (BASE, BASE, "a: 1", "`schema.yaml` is no schema: it is no list of tables."),
        (
            *(BASE, BASE, "- name: db.orders"),
            "`schema.yaml` is no schema: table 1 has no name with columns.",
        ),
        (
            *(BASE, BASE, "- {name: db.orders, columns: {id: nonsense<}}"),
            "`schema.yaml` is no schema: table `db.orders` cannot be read:",
        ),
    ],
)
def test_bad_input__is_one_sentence(
    tmp_path: Path,
    base: str | bytes | None,
    head: str | bytes | None,
    schema: str,
    told: str,
) -> None:
    with pytest.raises(BadInput) as caught:
        compare(tmp_path, base, head, schema)
    assert caught.value.message.startswith(told)
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_directory__is_no_query(tmp_path: Path) -> None:
    (tmp_path / "base.sql").mkdir()
    with pytest.raises(BadInput, match="is a directory"):
        compare(tmp_path, None, BASE)


def test_a_query_without_end__is_not_known_in_time(tmp_path: Path) -> None:
    many = ", ".join(f"db.orders o{number}" for number in range(30))
    product = f"SELECT COUNT(*) AS n FROM {many}"
    code, told = compare(tmp_path, product, product.replace("COUNT(*)", "COUNT(*) + 0"))
    assert code == 3
    assert re.search(r"because of (more time|a query that needs more memory) than the judge", told)
