"""The statements that stand literally in a Jinja template, whole or cut off by a tag."""

from __future__ import annotations

import pytest

from ci_bot.worker.sql_effects.unrendered_sql import list_template_effects


def told(template: str) -> list[tuple[str, str, object]]:
    return [
        (found.action, found.kind, found.target)
        for found in list_template_effects(template, "spark")
    ]


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("DROP TABLE shop.orders", ("drops", "DROP TABLE", ("shop", "orders"))),
        # A tag takes the rest of the statement: its first words and its name are left.
        (
            "INSERT INTO shop.orders ({% for c in cs %}{{ c }},{% endfor %}) SELECT 1",
            ("writes", "INSERT INTO", ("shop", "orders")),
        ),
        (
            "INSERT OVERWRITE TABLE shop.orders PARTITION ({% if x %}a{% endif %}) SELECT 1",
            ("writes", "INSERT OVERWRITE", ("shop", "orders")),
        ),
        (
            "SELECT 1; MERGE INTO shop.orders USING ({% include 'a' %}) ON 1 = 1",
            ("writes", "MERGE INTO", ("shop", "orders")),
        ),
        (
            "CREATE TABLE IF NOT EXISTS a.b.c ({% for c in cs %}{{ c }} INT,{% endfor %})",
            ("creates", "CREATE TABLE", ("a", "b", "c")),
        ),
        ("ALTER TABLE shop.orders {% if x %}ADD{% endif %}", ("alters", "ALTER TABLE", None)),
        ("{{ run('DELETE FROM shop.orders WHERE 1 = 1') }}", ("writes", "DELETE", None)),
    ],
)
def test_literals__are_found(template: str, found: tuple[str, str, object]) -> None:
    seen = told(template)
    assert any(
        item[:2] == found[:2] and (found[2] is None or item[2] == found[2]) for item in seen
    ), seen


@pytest.mark.parametrize(
    "template",
    [
        "{{ this }}",
        "{% if x %}SELECT 1{% endif %}",
        "{{ config('orders') }}",
        "-- DROP TABLE shop.orders\nSELECT 1",
        "'{% if x %}",  # neither a template nor SQL
    ],
)
def test_literals__of_what_does_nothing_are_none(template: str) -> None:
    assert [item for item in told(template) if item[0] != "nothing"] == []


def test_literals__of_a_target_that_is_put_in_wait_for_rendering() -> None:
    assert told("DROP TABLE {{ target }} {% if x %}CASCADE{% endif %}") == []


def test_literals__of_the_model_itself() -> None:
    template = "TRUNCATE TABLE {{ this_model }} {% if x %}{% endif %}"
    assert {item[0] for item in told(template)} == {"writes"}


def test_literals__of_a_broken_template_are_read_as_text() -> None:
    assert ("drops", "DROP TABLE", ("shop", "orders")) in told("DROP TABLE shop.orders; {% if")
