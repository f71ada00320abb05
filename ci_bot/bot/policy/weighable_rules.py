"""All rules, and which of them a policy may not weigh, or only in narrow forms, and why."""

from __future__ import annotations

from collections.abc import Mapping

from ci_bot.protocol.plan import Severity
from ci_bot.protocol.rules import RULES

CODE_ON_LOAD = "R12-code-on-load"
_NO_PLAN = "there is no plan to decide on"
_NO_CREDENTIALS = "it keeps credentials out of the repository"

# No decision is possible before these are fixed, so no entry of a file can replace that.
UNWEIGHED: Mapping[str, str] = {
    "R01-load-failed": _NO_PLAN,
    "R01-plan-failed": _NO_PLAN,
    "R01-base-broken": "there is no plan to compare with",
    "R01-uncategorized": "SQLMesh cannot apply the plan",
    "R01-prod-plan-fails": "the merge would fail in prod",
    "R03-conflict": "there is no merged project to plan",
    "R05-forward-only-destructive": "SQLMesh refuses the plan; `allow-destructive` is what allows "
    "it",
    **dict.fromkeys(
        (
            "R09-duplicate-keys",
            "R09-null-keys",
            "R09-rows-gained",
            "R09-rows-lost",
            "R09-values-differ",
        ),
        "an apply tells it and no review; `data-diff` says how much may differ",
    ),
    "R10-files-not-read": "nobody has looked for credentials",
    "R10-not-listed": "it counts for findings that are not listed",
    CODE_ON_LOAD: "code of the pull request may have made up the rest of the report; `trust` makes "
    "it a note for people with write permission",
    "policy-changed": "a pull request would silence its own alarm",
    "policy-expired": "it is about the policy itself",
    "rule-crashed": "a rule has not looked",
}

# What these rules stop cannot be undone: rows of prod, and secrets that others have read. So an
# entry never makes them lighter in general. For named models or files they can be ignored until a
# day, and what a statement writes can be allowed by its target.
PROTECTED: Mapping[str, str] = {
    "destructive-statement": "it keeps statements from writing what is not the environment's",
    "code-in-sql": "it keeps programs out of Spark",
    "macro-runs-python": "it keeps SQL from running as Python beside credentials",
    "setting-runs-code": "it keeps settings from running code beside credentials",
    "hardcoded-secret": _NO_CREDENTIALS,
    "env-file-tracked": _NO_CREDENTIALS,
    "forward-only-destructive": "it keeps columns of prod's tables from being lost",
}


def list_rules_that_policy_may_weigh() -> Mapping[str, frozenset[Severity]]:
    """Returns the rules that a policy may name, each with all weights that it has by default."""
    return {id_: spec.severities for id_, spec in RULES.items()}
