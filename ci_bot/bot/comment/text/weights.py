"""What a team's policy made of findings, in sentences. Names in them are not ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ci_bot.bot.comment.text import words
from ci_bot.contracts.documents.policy import ModelOwners, PolicyUsed, Weighed
from ci_bot.contracts.documents.report import Risk

_ASIDE = (
    ("acceptance", "accepted by its owner"),
    ("data_diff", "cleared by the data diff"),
    ("ignore", "ignored by the policy"),
    ("off", "of a rule that is off"),
    ("statement", "allowed by the policy"),
    ("comment", "ignored by a comment in its model"),
)


def weighed(risk: Risk) -> str:
    """Why a finding weighs what it does; "" where that is its own weight."""
    told = risk.weighed
    return "" if told is None else f"{_how(told)}: {told.reason.removesuffix('.')}."


def _how(told: Weighed) -> str:
    return {
        "severity": f"By itself {told.weight}; `{told.place}` says otherwise",
        "off": f"The rule is off by `{told.place}`",
        "ignore": f"Ignored until {told.until} by `{told.place}`",
        "statement": f"Allowed by `{told.place}`",
        "comment": f"Ignored by the comment in `{told.place}`",
        "acceptance": f"Accepted by `@{told.who}` on {(told.at or '')[:10]}",
        "data_diff": "Cleared by the data diff",
    }[told.by]


def set_aside(risks: Sequence[Risk]) -> str:
    """How many findings took no part in the decision, and why; "" where there is none."""
    found: Counter[str] = Counter(risk.weighed.by for risk in risks if risk.weighed)
    return ", ".join(f"{words.number(found[by])} {told}" for by, told in _ASIDE if found[by])


def may_accept(risks: Sequence[Risk], owners: Sequence[ModelOwners], command: str) -> str:
    """Who may accept the first of these findings, and how; "" where nobody owns its model."""
    known = {item.model: item for item in owners}
    for risk in risks:
        found = known.get(risk.model or "")
        if found is not None:
            names = " or ".join(f"`@{name}`" for name in (*found.logins, *found.teams))
            return (
                f"{names} may accept it, as an owner: "
                f'`{command} accept {risk.rule} {risk.model} "reason"`'
            )
    return ""


def policy(used: PolicyUsed | None) -> str:
    """Which policy counted; "" where there is none."""
    if used is None:
        return ""
    files = " and ".join(f"`{path}`" for path in used.files)
    entries = words.count(used.entries, "entry")
    if used.source == "working_tree":
        return f"Policy: {files} as it lies here, for want of a base commit; {entries}."
    return f"Policy: {files} of the base commit `{(used.commit or '')[:7]}`; {entries}."
