"""Which rules a policy may not weigh, or in the narrow forms only, and why."""

from __future__ import annotations

from collections.abc import Mapping

# No decision can be made without what these ask for, so nothing in a file can take its place.
UNWEIGHED: Mapping[str, str] = {
    "R01-load-failed": "there is no plan to decide on",
    "R01-plan-failed": "there is no plan to decide on",
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
    "R10-not-listed": "it stands for findings that are not listed",
    "R12-code-on-load": "code of the pull request may have made up the rest of the report",
    "policy-changed": "a pull request would silence its own alarm",
    "policy-expired": "it is about the policy itself",
    "rule-crashed": "a rule has not looked",
}

# What these stop cannot be taken back: rows of prod, and secrets that others have read. So they are
# never made lighter as such. For named models or files they can be ignored until a day, and what a
# statement writes can be allowed by its target.
PROTECTED: Mapping[str, str] = {
    "destructive-statement": "it keeps statements from writing what is not the environment's",
    "code-in-sql": "it keeps programs out of Spark",
    "macro-runs-python": "it keeps SQL from running as Python beside credentials",
    "setting-runs-code": "it keeps settings from running code beside credentials",
    "hardcoded-secret": "it keeps credentials out of the repository",
    "env-file-tracked": "it keeps credentials out of the repository",
    "forward-only-destructive": "it keeps columns of prod's tables from being lost",
}
