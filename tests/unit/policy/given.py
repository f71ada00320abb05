"""Policies as tests write them, and a small world of rules for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from textwrap import dedent

from ci_bot.bot.policy.policy import Policy
from ci_bot.bot.policy.policy_file import read_policy
from ci_bot.protocol.plan import Severity

PATH = "shop/.sqlmesh-review.yaml"
TODAY = date(2026, 11, 22)
WEIGHTS: Mapping[str, frozenset[Severity]] = {
    "select-star": frozenset({"medium"}),
    "missing-grain": frozenset({"low"}),
    "join-changed": frozenset({"high"}),
    "R04-model-removed": frozenset({"blocker", "high", "medium"}),
    "R12-code-on-load": frozenset({"high"}),
    "hardcoded-secret": frozenset({"blocker"}),
    "destructive-statement": frozenset({"blocker", "high"}),
    "personal-data-exposed": frozenset({"high", "low"}),
}


def policy(*texts: str) -> Policy:
    """The policy of some files."""
    return Policy(
        tuple(
            read_policy(dedent(text).encode(), path=PATH, rules=WEIGHTS, today=TODAY)
            for text in texts
        )
    )
