"""The findings as SARIF: what GitHub's code scanning reads, and alerts that stay the same."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ci_bot.bot.report.model.sarif_log import MOST_RESULTS, make_sarif_view_of_report
from ci_bot.protocol.review_report import Report
from ci_bot.protocol.rules import RULES
from tests.factories import make_change, make_context, make_report, make_risk
from tests.golden.samples import report
from tests.unit.report.dom import RULES_URL

TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
LEVEL = {"enum": ["error", "warning", "note"]}
# The properties that GitHub documents as required or read, with its limits:
# https://docs.github.com/en/code-security/reference/code-scanning/sarif-support
GITHUB: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"const": "https://json.schemastore.org/sarif-2.1.0.json"},
        "version": {"const": "2.1.0"},
        "runs": {
            "maxItems": 20,
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "maxItems": 25_000,
                                        "items": {
                                            "required": [
                                                "id",
                                                "shortDescription",
                                                "fullDescription",
                                            ],
                                            "properties": {
                                                "id": {"type": "string", "maxLength": 255},
                                                "name": {"type": "string", "maxLength": 255},
                                                "shortDescription": TEXT,
                                                "fullDescription": TEXT,
                                                "help": TEXT,
                                                "helpUri": {"type": "string"},
                                                "defaultConfiguration": {
                                                    "properties": {"level": LEVEL}
                                                },
                                                "properties": {
                                                    "properties": {
                                                        "tags": {"maxItems": 20},
                                                        "problem.severity": {
                                                            "enum": [
                                                                "error",
                                                                "warning",
                                                                "recommendation",
                                                            ]
                                                        },
                                                    }
                                                },
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "maxItems": 25_000,
                        "items": {
                            "required": ["message", "locations", "partialFingerprints", "ruleId"],
                            "properties": {
                                "level": LEVEL,
                                "message": TEXT,
                                "locations": {
                                    "minItems": 1,
                                    "maxItems": 1_000,
                                    "items": {
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {
                                                                "pattern": r"^(?!/)[A-Za-z0-9._~%/-]+$"
                                                            }
                                                        },
                                                    },
                                                    "region": {
                                                        "required": ["startLine"],
                                                        "properties": {
                                                            "startLine": {
                                                                "type": "integer",
                                                                "minimum": 1,
                                                            }
                                                        },
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                                "partialFingerprints": {
                                    "required": ["primaryLocationLineHash"],
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def log(given: Report, **context: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(make_sarif_view_of_report(given, make_context(**context)))
    jsonschema.Draft202012Validator(GITHUB).validate(made)
    (run,) = made["runs"]
    assert all(
        run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
        for one in run["results"]
    )
    prints = [one["partialFingerprints"]["primaryLocationLineHash"] for one in run["results"]]
    assert len(set(prints)) == len(prints), "two findings would be one alert"
    found: dict[str, Any] = run
    return found


def reviewed(*risks: Any, **more: Any) -> Report:
    return make_report(risks=list(risks), **more)


def prints(given: Report) -> list[str]:
    return [one["partialFingerprints"]["primaryLocationLineHash"] for one in log(given)["results"]]


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
def test_log__of_a_real_review__is_what_github_takes(name: str) -> None:
    recorded = report(name)
    results = log(recorded)["results"]
    changed = {change.model for change in recorded.changes if change.path}
    placed = [risk for risk in recorded.risks if risk.path or risk.model in changed]
    assert [one["ruleId"] for one in results] == [risk.rule for risk in placed]


def test_rule__has_its_page_as_help() -> None:
    run = log(reviewed(make_risk(rule="join-changed")), rules_url=RULES_URL.rstrip("/"))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == RULES["join-changed"].title
    assert rule["help"]["markdown"].lstrip().startswith("# A join changes")
    assert rule["helpUri"] == f"{RULES_URL}join-changed.md"


def test_rule__of_the_projects_linter__has_no_page_and_is_taken() -> None:
    (rule,) = log(reviewed(make_risk(rule="theirownrule")))["tool"]["driver"]["rules"]
    assert rule["id"] == "theirownrule"
    assert "helpUri" not in rule


@pytest.mark.parametrize(
    ("severity", "level"),
    [("blocker", "error"), ("high", "warning"), ("medium", "warning"), ("low", "note")],
)
def test_level__follows_the_weight(severity: Any, level: str) -> None:
    (result,) = log(reviewed(make_risk(severity=severity)))["results"]
    assert result["level"] == level


def test_finding__without_a_file__stands_at_its_model_or_is_left_out() -> None:
    of_model = make_risk(rule="filter-changed", path=None, line=None)
    of_plan = make_risk(rule="R01-prod-plan-fails", model=None, path=None, line=None)
    (result,) = log(reviewed(of_model, of_plan, changes=[make_change(path="models/o.sql")]))[
        "results"
    ]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "models/o.sql"
    assert location["region"]["startLine"] == 1


def test_path__is_an_address() -> None:
    (result,) = log(reviewed(make_risk(path="models/über uns#1.sql")))["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "models/%C3%BCber%20uns%231.sql"


def test_fingerprint__stays_where_lines_and_sentences_change() -> None:
    one = make_risk(rule="select-star", line=3, evidence="a", subject="line 3; SELECT *")
    moved = make_risk(rule="select-star", line=90, evidence="b", subject="line 90; SELECT *")
    assert prints(reviewed(one)) == prints(reviewed(moved))


@pytest.mark.parametrize(
    "other",
    [{"rule": "join-changed"}, {"model": "a.b"}, {"path": "other.sql"}, {"subject": "another"}],
)
def test_fingerprint__is_another_for_another_finding(other: dict[str, Any]) -> None:
    one: dict[str, Any] = {"rule": "select-star", "subject": "one"}
    assert prints(reviewed(make_risk(**one))) != prints(reviewed(make_risk(**{**one, **other})))


def test_fingerprints__of_the_same_thing_twice__are_counted_in_the_order_of_lines() -> None:
    early = make_risk(rule="select-star", line=3, subject="line 3; x")
    late = make_risk(rule="select-star", line=30, subject="line 30; x")
    first, second = prints(reviewed(late, early))
    assert (first[-2:], second[-2:]) == (":2", ":1")
    assert first[:-2] == second[:-2]


def test_log__of_two_projects__has_two_categories() -> None:
    one, other = log(reviewed(), project="a"), log(reviewed(), project="b")
    assert one["automationDetails"]["id"] != other["automationDetails"]["id"]
    assert (
        GITHUB["properties"]["runs"]["items"]["properties"]["results"]["maxItems"] == MOST_RESULTS
    )
