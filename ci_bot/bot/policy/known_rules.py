"""The rules that a policy may name, with every weight that each may have by itself."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.contracts.documents.plan import Severity
from ci_bot.contracts.rules import RULES


def known_rules() -> Mapping[str, frozenset[Severity]]:
    """By id, as the rules' pages declare them."""
    return {id_: spec.severities for id_, spec in RULES.items()}
