"""A team's own policy: read from a file as data, checked, compared, and applied to findings"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.policy import severity_overrides
    from ci_bot.bot.policy.comparison import PolicyChange, changes
    from ci_bot.bot.policy.document import (
        UNWEIGHED,
        Entry,
        IgnoreEntry,
        ScopedEntry,
        known_rules,
        policy_schema,
    )
    from ci_bot.bot.policy.model_owners import (
        MOST_CODEOWNERS_BYTES,
        PLACES,
        Acceptances,
        CodeOwnersFile,
        ModelFiles,
        Ownership,
        fingerprints,
        may_be_accepted,
        ownership,
    )
    from ci_bot.bot.policy.policy import (
        IgnoreComments,
        Matches,
        Policy,
        compared,
        in_text,
        is_on_path,
        may_ignore,
        scope_key,
        why_not,
    )
    from ci_bot.bot.policy.policy_file import (
        FILE_NAME,
        MOST_POLICY_BYTES,
        UnfitPolicy,
        read_policy,
        unfit,
    )
    from ci_bot.bot.policy.severity_overrides import Weighing, said

__all__ = [
    "FILE_NAME",
    "MOST_CODEOWNERS_BYTES",
    "MOST_POLICY_BYTES",
    "PLACES",
    "UNWEIGHED",
    "Acceptances",
    "CodeOwnersFile",
    "Entry",
    "IgnoreComments",
    "IgnoreEntry",
    "Matches",
    "ModelFiles",
    "Ownership",
    "Policy",
    "PolicyChange",
    "ScopedEntry",
    "UnfitPolicy",
    "Weighing",
    "changes",
    "compared",
    "fingerprints",
    "in_text",
    "is_on_path",
    "known_rules",
    "may_be_accepted",
    "may_ignore",
    "ownership",
    "policy_schema",
    "read_policy",
    "said",
    "scope_key",
    "severity_overrides",
    "unfit",
    "why_not",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "comparison": ["PolicyChange", "changes"],
        "document": [
            "Entry",
            "IgnoreEntry",
            "ScopedEntry",
            "UNWEIGHED",
            "known_rules",
            "policy_schema",
        ],
        "model_owners": [
            "Acceptances",
            "CodeOwnersFile",
            "MOST_CODEOWNERS_BYTES",
            "ModelFiles",
            "Ownership",
            "PLACES",
            "fingerprints",
            "may_be_accepted",
            "ownership",
        ],
        "policy": [
            "IgnoreComments",
            "Matches",
            "Policy",
            "compared",
            "in_text",
            "is_on_path",
            "may_ignore",
            "scope_key",
            "why_not",
        ],
        "policy_file": ["FILE_NAME", "MOST_POLICY_BYTES", "UnfitPolicy", "read_policy", "unfit"],
        "severity_overrides": ["Weighing", "said"],
    },
)
