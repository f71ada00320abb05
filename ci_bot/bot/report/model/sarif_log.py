"""A review's findings as SARIF 2.1.0, for GitHub's code scanning and other readers of that format.

Which properties GitHub reads, and how many of each it takes:
https://docs.github.com/en/code-security/reference/code-scanning/sarif-support
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from ci_bot import __version__
from ci_bot.bot.report import words
from ci_bot.bot.report.markdown_text import clip_text, one_line
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.bot.report.model.finding_groups import PlacedFindingView, place_finding_views
from ci_bot.protocol.plan import Severity
from ci_bot.protocol.review_report import Report, Risk
from ci_bot.protocol.rules import RULES, find_rule, read_rule_page

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
TOOL = "sqlmesh-plan-review"
# The most results that GitHub accepts in one run.
MOST_RESULTS = 25_000
_MESSAGE = 4_000
# About a thing without a name, some rules say on which line it is.
_LINE = re.compile(r"\bline \d+")
_HELP = 20_000
_LEVELS: dict[Severity, str] = {
    "blocker": "error",
    "high": "warning",
    "medium": "warning",
    "low": "note",
    "info": "note",
}


def make_sarif_view_of_report(report: Report, context: CommentViewContext) -> str:
    """Returns the log as JSON: every finding that counts and has a file, and its rule's page.

    Code scanning cannot show a finding without a file. A finding that does not count for the
    decision is left out, so that GitHub closes its alert.

    Args:
        report: Without secrets.
        context: Says which project it is, and where the rules' pages are.
    """
    placed = place_finding_views(report.risks, report.changes)[:MOST_RESULTS]
    rules = sorted({item.risk.rule for item in placed})
    driver: dict[str, object] = {
        "name": TOOL,
        "semanticVersion": __version__,
        "rules": [_describe_rule(rule, context) for rule in rules],
    }
    run: dict[str, object] = {
        "tool": {"driver": driver},
        # By this id code scanning separates the alerts of one project from those of another.
        "automationDetails": {"id": f"{TOOL}/{one_line(context.project, 100)}/"},
        "columnKind": "unicodeCodePoints",
        "results": _make_sarif_results(placed, rules),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _describe_rule(rule: str, context: CommentViewContext) -> dict[str, object]:
    """Describes a rule, with its page as help; the linter's rules have no page."""
    if rule not in RULES:
        return {"id": rule, "shortDescription": {"text": rule}, "fullDescription": {"text": rule}}
    spec = find_rule(rule)
    page = clip_text(read_rule_page(rule), _HELP)
    found: dict[str, object] = {
        "id": rule,
        "name": rule,
        "shortDescription": {"text": spec.title},
        "fullDescription": {"text": spec.title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[spec.severity]},
        "properties": {
            "tags": ["sqlmesh", *([spec.topic] if spec.topic else [])],
            "precision": "high",
            "problem.severity": _map_severity(spec.severity),
        },
    }
    if context.rules_url is not None:
        found["helpUri"] = f"{context.rules_url}/{rule}.md"
    return found


def _map_severity(severity: Severity) -> str:
    """Returns GitHub's word for a level."""
    level = _LEVELS[severity]
    return "recommendation" if level == "note" else level


def _make_sarif_results(
    placed: Sequence[PlacedFindingView], rules: Sequence[str]
) -> list[dict[str, object]]:
    """Makes the results; findings about the same thing are numbered in the order of their lines."""
    seen: Counter[str] = Counter()
    found: dict[int, dict[str, object]] = {}
    for at, item in sorted(enumerate(placed), key=lambda each: each[1].risk.line or 0):
        fingerprint = fingerprint_finding(item.risk, item.path)
        seen[fingerprint] += 1
        found[at] = _make_sarif_result(item, rules, f"{fingerprint}:{seen[fingerprint]}")
    return [found[at] for at in range(len(placed))]


def _make_sarif_result(
    item: PlacedFindingView, rules: Sequence[str], fingerprint: str
) -> dict[str, object]:
    risk = item.risk
    clearing = words.describe_clearing(one_line(risk.clears_when))
    message = " ".join(filter(None, (one_line(risk.evidence), clearing)))
    return {
        "ruleId": risk.rule,
        "ruleIndex": rules.index(risk.rule),
        "level": _LEVELS[risk.severity],
        "message": {"text": clip_text(message, _MESSAGE)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(item.path, safe="/", errors="replace"),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": item.line},
                }
            }
        ],
        "partialFingerprints": {
            # GitHub compares only this one; without it GitHub would use the text of the line.
            "primaryLocationLineHash": fingerprint,
            "finding/v1": fingerprint,
        },
    }


def fingerprint_finding(risk: Risk, path: str) -> str:
    """Returns 32 digits of a SHA-256 that identifies a finding, also after its line has moved.

    It is made of the rule, the model, the path and the subject, and not of a sentence or a line.
    """
    about = [risk.rule, risk.model or "", path, _LINE.sub("", risk.subject or "")]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
