"""What a team's policy made of findings, in sentences. Names in them are not ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ci_bot.bot.report import words
from ci_bot.protocol.review_report import ModelOwners, PolicyUsed, Risk, Weighed, find_owners

_CLEARED = "cleared by the data diff"
_ASIDE = (
    ("acceptance", "accepted by its owner"),
    ("data_diff", _CLEARED),
    ("ignore", "ignored by the policy"),
    ("off", "of a rule that is off"),
    ("statement", "allowed by the policy"),
    ("comment", "ignored by a comment in its model"),
)


def describe_weight_of_finding(risk: Risk) -> str:
    """Says why a finding has its weight; "" if nothing changed its weight."""
    weighed = risk.weighed
    return (
        ""
        if weighed is None
        else f"{_describe_cause_of_weight(weighed)}: {weighed.reason.removesuffix('.')}."
    )


def _describe_cause_of_weight(weighed: Weighed) -> str:
    return {
        "severity": f"By itself {weighed.weight}; `{weighed.place}` says otherwise",
        "off": f"The rule is off by `{weighed.place}`",
        "ignore": f"Ignored until {weighed.until} by `{weighed.place}`",
        "statement": f"Allowed by `{weighed.place}`",
        "comment": f"Ignored by the comment in `{weighed.place}`",
        "acceptance": f"Accepted by `@{weighed.who}` on {(weighed.at or '')[:10]}",
        "data_diff": _CLEARED.capitalize(),
    }[weighed.by]


def count_findings_set_aside(risks: Sequence[Risk]) -> str:
    """Says how many findings did not count for the decision, and why; "" if all counted."""
    found: Counter[str] = Counter(risk.weighed.by for risk in risks if risk.weighed)
    return ", ".join(
        f"{words.format_number(found[by])} {phrase}" for by, phrase in _ASIDE if found[by]
    )


def describe_who_may_accept(
    risks: Sequence[Risk], owners: Sequence[ModelOwners], command: str
) -> str:
    """Says who may accept the first of these findings, and how; "" if no model has an owner."""
    for risk in risks:
        found = find_owners(owners, risk)
        if found is not None:
            names = " or ".join(f"`@{name}`" for name in (*found.logins, *found.teams))
            return (
                f"{names} may accept it, as an owner: "
                f'`{command} accept {risk.rule} {risk.model} "reason"`'
            )
    return ""


def describe_policy_used(used: PolicyUsed | None) -> str:
    """Says which policy counted; "" if there is none."""
    if used is None:
        return ""
    files = " and ".join(f"`{path}`" for path in used.files)
    entries = words.format_count(used.entries, "entry")
    if used.source == "working_tree":
        return f"Policy: {files} of this directory, because there is no base commit; {entries}."
    return f"Policy: {files} of the base commit `{(used.commit or '')[:7]}`; {entries}."
