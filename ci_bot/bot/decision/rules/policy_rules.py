"""The team's policy itself: how this pull request changes it, and what of it is over."""

from __future__ import annotations

from collections.abc import Iterator

from ci_bot.bot.decision.given import BotFacts, Limits
from ci_bot.bot.decision.registry import judges
from ci_bot.bot.decision.risks import counted, risk
from ci_bot.bot.policy.document import IgnoreEntry
from ci_bot.bot.policy.words import said
from ci_bot.contracts.documents.plan import Severity
from ci_bot.contracts.documents.report import ReviewFacts, Risk
from ci_bot.contracts.rules import rule

CHANGED = rule("policy-changed")
EXPIRED = rule("policy-expired")
# Each is a line of the comment; a policy that is written anew has hundreds.
MOST_CHANGES = 30
_READ = "whoever answers for the policy has read the change"


@judges(CHANGED)
def policy_changed(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """What would be judged otherwise after the merge; those that loosen come first."""
    shown, rest = bot.policy_changes[:MOST_CHANGES], bot.policy_changes[MOST_CHANGES:]
    for change in shown:
        yield risk(
            CHANGED,
            f"{'This loosens the review' if change.loosens else 'The policy changes'} from the "
            f"merge on: {change.told}.",
            _READ,
            severity=None if change.loosens else "low",
            path=change.path,
            line=change.line,
            subject=change.told,
        )
    if rest:
        looser = any(change.loosens for change in rest)
        told = f"{counted(len(rest), 'more change')} of the policy."
        weight: Severity | None = None if looser else "low"
        yield risk(CHANGED, told, _READ, severity=weight, path=rest[0].path, subject="more")


@judges(EXPIRED)
def policy_expired(facts: ReviewFacts, limits: Limits, bot: BotFacts) -> Iterator[Risk]:
    """Ignores whose last day has passed."""
    weighing = bot.weighing
    for entry in weighing.policy.ignore:
        if entry.until >= weighing.today:
            continue
        rules = ", ".join(f"`{name}`" for name in entry.rule)
        yield risk(
            EXPIRED,
            f"Since {entry.until.isoformat()} {rules} {_verb(entry)} no longer ignored "
            f"({entry.reason}).",
            "the entry is gone, or has a new day",
            severity=None if _touches(entry, facts, bot) else "info",
            path=entry.path,
            line=entry.line,
            subject=said(entry),
        )


def _verb(entry: IgnoreEntry) -> str:
    return "is" if len(entry.rule) == 1 else "are"


def _touches(entry: IgnoreEntry, facts: ReviewFacts, bot: BotFacts) -> bool:
    """Whether the change is about a model or a file of the entry."""
    return any(bot.weighing.is_about(entry, change.model, change.path) for change in facts.changes)
