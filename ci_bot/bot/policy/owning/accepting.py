"""Findings that the owner of their model has accepted. Pure.

An acceptance is about a rule and a model as it was. It holds as long as that model's fingerprint is
the same, whatever else is pushed; and it never covers more than what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from ci_bot.bot.policy.protected import UNWEIGHED
from ci_bot.contracts.documents.plan import Change, Severity
from ci_bot.contracts.documents.policy import Acceptance, Weighed
from ci_bot.contracts.documents.report import Risk

_HEAVIEST_FIRST: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Acceptances:
    """What was accepted, and the models as they are now.

    Attributes:
        fingerprints: of the changed models; a removed one has none.
    """

    items: tuple[Acceptance, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Sequence[Acceptance], changes: Sequence[Change]) -> Acceptances:
        return cls(tuple(items), fingerprints(changes))

    def about(self, risk: Risk) -> Acceptance | None:
        """The acceptance that covers a finding."""
        if not may_be_accepted(risk):
            return None
        for item in reversed(self.items):
            if (item.rule, item.model) == (risk.rule, risk.model) and self._holds(item, risk):
                return item
        return None

    def fallen(self, risk: Risk) -> Acceptance | None:
        """One that was about a finding, and is no longer."""
        if self.about(risk) is not None:
            return None
        named = [i for i in self.items if (i.rule, i.model) == (risk.rule, risk.model)]
        return named[-1] if named else None

    def _holds(self, item: Acceptance, risk: Risk) -> bool:
        same = self.fingerprints.get(item.model) == item.fingerprint
        seen = (risk.subject or "") in item.subjects
        return same and seen and _rank(risk.severity) >= _rank(item.severity)


def fingerprints(changes: Sequence[Change]) -> dict[str, str]:
    """What each changed model is now; a removed one is `removed`."""
    known = {c.model: c.fingerprint for c in changes if c.fingerprint is not None}
    return known | {c.model: "removed" for c in changes if c.change == "removed"}


def may_be_accepted(risk: Risk) -> bool:
    """Whether an owner may accept a finding: it is about a model, and does not block."""
    return risk.model is not None and risk.severity != "blocker" and risk.rule not in UNWEIGHED


def accepted(risk: Risk, item: Acceptance) -> Risk:
    """The finding with who accepted it."""
    return risk.model_copy(
        update={
            "weighed": Weighed(
                by="acceptance",
                weight=risk.weighed.weight if risk.weighed else risk.severity,
                reason=item.reason,
                who=item.by,
                at=item.at,
            )
        }
    )


def _rank(severity: Severity) -> int:
    return _HEAVIEST_FIRST.index(severity)
