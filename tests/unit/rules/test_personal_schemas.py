"""Personal data, where a team has said which schemas may hold them: told once, where they leave."""

from __future__ import annotations

import pytest

from tests.unit.rules.world import change, seen

STAGED = "MODEL (name stg.people, kind FULL); SELECT c.customer_id, c.email FROM raw.customers AS c"
MART = "MODEL (name mart.people, kind FULL); SELECT p.customer_id{column} FROM stg.people AS p"
REPORT = "MODEL (name bi.people, kind FULL); SELECT p.customer_id{column} FROM mart.people AS p"
OTHER = "MODEL (name bi.other, kind FULL); SELECT p.customer_id, s.email AS mail, p.contact FROM mart.people AS p JOIN stg.people AS s USING (customer_id)"


def told(allowed: tuple[str, ...] | None, mart: str, report: str) -> dict[str | None, str]:
    """The models that are told of, when a column is passed on to the end."""
    files = {"stg.sql": STAGED, "mart.sql": MART, "bi.sql": REPORT}
    before = {path: text.format(column="") for path, text in files.items()}
    after = {
        "stg.sql": STAGED,
        "mart.sql": MART.format(column=mart),
        "bi.sql": REPORT.format(column=report),
    }
    inputs = change(before, after, personal_schemas=allowed)
    return {item.model: item.severity for item in seen(inputs, "personal-data-exposed")}


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (None, {"mart.people": "high", "bi.people": "high"}),
        (("stg",), {"mart.people": "high"}),
        (("STG", "mart"), {"bi.people": "high"}),
        (("stg", "m*"), {"bi.people": "high"}),
        (("stg", "mart", "bi"), {}),
        # Staging has them already where it may not: nothing leaves that has not left before.
        ((), {}),
    ],
)
def test_personal_data__are_told_where_they_leave(
    allowed: tuple[str, ...] | None, expected: dict[str | None, str]
) -> None:
    assert told(allowed, ", p.email AS contact", ", p.contact AS e_mail") == expected


def test_personal_data__that_come_past_a_model_above_are_told() -> None:
    mart = MART.format(column=", p.email AS contact")
    before = {"stg.sql": STAGED, "mart.sql": mart}
    inputs = change(before, {**before, "bi.sql": OTHER}, personal_schemas=("stg",))
    (found,) = seen(inputs, "personal-data-exposed")
    assert (found.model, found.subject) == ("bi.other", "mail")


def test_personal_data__taken_in_where_they_may_not_be_are_high() -> None:
    for allowed, expected in ((None, ["low"]), (("crm",), ["high"]), (("stg",), [])):
        inputs = change({}, {"stg.sql": STAGED}, personal_schemas=allowed)
        found = [item.severity for item in seen(inputs, "personal-data-exposed")]
        assert found == expected, allowed


@pytest.mark.parametrize(
    ("there", "severity"),
    [
        ("SELECT c.customer_id, SHA2(c.email, 256) AS email_key FROM raw.customers AS c", "high"),
        ("SELECT c.customer_id FROM raw.customers AS c WHERE c.email IS NOT NULL", "high"),
        ("SELECT c.customer_id, c.email FROM raw.customers AS c", "low"),
        ("SELECT c.customer_id FROM raw.customers AS c", "low"),
        ("SELECT o.order_id, SHA2(o.email, 256) AS email_key FROM raw.orders AS o", "low"),
    ],
)
def test_personal_data__taken_in_beside_a_model_that_hides_them(there: str, severity: str) -> None:
    """What another model hashes is meant to stay hidden."""
    before = {"key.sql": f"MODEL (name core.people, kind FULL); {there}"}
    found = seen(change(before, {**before, "stg.sql": STAGED}), "personal-data-exposed")
    assert [item.severity for item in found] == [severity]
    assert ("`core.people` hashes them or leaves them out" in found[0].evidence) == (
        severity == "high"
    )


def test_personal_data__that_a_staging_model_takes_in_and_its_readers_show() -> None:
    """Whoever reads one of the schema's models already sees now what was just taken in.

    The source had the column, and the staging model left it out until now: a decision, too.
    """
    staged = STAGED.replace(", c.email", "{column}").replace("kind FULL", "kind VIEW")
    shown = "MODEL (name stg.active, kind VIEW); SELECT p.customer_id{column} FROM stg.people AS p"
    before = {"stg.sql": staged.format(column=""), "active.sql": shown.format(column="")}
    after = {
        "stg.sql": staged.format(column=", c.email"),
        "active.sql": shown.format(column=", p.email"),
    }

    for was, expected in (
        (before, {"stg.people": "high", "stg.active": "high"}),
        # A reader that is new shows it to nobody yet.
        ({"stg.sql": before["stg.sql"]}, {"stg.people": "high"}),
    ):
        found = seen(change(was, after), "personal-data-exposed")
        assert {item.model: item.severity for item in found} == expected
