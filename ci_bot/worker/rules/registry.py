"""The catalogue of rules: one entry per id, with its default severity; its page is
`docs/rules/<id>.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_bot.contracts.documents.plan import Severity

Scope = Literal["model", "change", "project"]


@dataclass(frozen=True)
class RuleSpec:
    """What a rule is called, how heavy it is by default, and where it is explained.

    `scope` says what it reads: one model as it stands, a model before and after, or files.
    """

    id: str
    title: str
    severity: Severity
    scope: Scope


SPECS: dict[str, RuleSpec] = {}


def rule(id_: str, title: str, severity: Severity, scope: Scope) -> RuleSpec:
    """Registers a rule once, when its module is imported."""
    if id_ in SPECS:
        raise ValueError(f"Two rules are called {id_}.")
    SPECS[id_] = RuleSpec(id_, title, severity, scope)
    return SPECS[id_]


CRASHED = rule(
    "rule-crashed", "A rule of ours failed on this project", severity="info", scope="project"
)
