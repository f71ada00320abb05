"""What a rule saw, before it becomes a finding with a file and a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ci_bot.contracts.documents.plan import Finding, Severity
from ci_bot.contracts.rules import RuleSpec
from ci_bot.secrets import hide
from ci_bot.secrets.cutting import shortened

EVIDENCE_LENGTH = 1_000


@dataclass(frozen=True)
class Observation:
    """One observation.

    Attributes:
        spec: the rule that saw it.
        evidence: one sentence with the names and figures that a reader can check. Never a secret.
        clears: what has to be true for the finding to go away.
        severity: where it differs from the rule's default.
        model: the SQLMesh model that it is about, if any.
        model_name: its name, where there is no model object because nothing could be loaded.
        anchors: words to look for in the file, best first, to find the line.
        path, line: where the place is known exactly.
    """

    spec: RuleSpec
    evidence: str
    clears: str
    severity: Severity | None = None
    model: Any = None
    anchors: tuple[str, ...] = ()
    path: str | None = None
    line: int | None = None
    model_name: str | None = None

    @property
    def weight(self) -> Severity:
        return self.severity or self.spec.severity


def finding(observation: Observation, path: str | None, line: int | None) -> Finding:
    """The contract's form of `observation`."""
    return Finding(
        rule=observation.spec.id,
        severity=observation.weight,
        model=getattr(observation.model, "fqn", observation.model_name),
        path=path,
        line=line,
        evidence=shortened(hide(observation.evidence), EVIDENCE_LENGTH),
        clears_when=shortened(observation.clears, EVIDENCE_LENGTH),
    )


def names(items: object, limit: int = 5) -> str:
    """`a`, `b` and 3 more."""
    every = sorted({str(item) for item in items})  # type: ignore[attr-defined]
    shown = ", ".join(f"`{item}`" for item in every[:limit])
    rest = len(every) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown
