"""A team's own policy: read from a file as data, checked, compared, and applied to findings"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.policy import severity_overrides
    from ci_bot.bot.policy.comparison import PolicyChange, list_policy_changes
    from ci_bot.bot.policy.document import (
        IgnoreEntry,
        PolicyEntry,
        PolicyFile,
        ScopedEntry,
        render_policy_schema,
    )
    from ci_bot.bot.policy.exposures import (
        MOST_EXPOSURE_BYTES,
        Exposure,
        describe_stale_exposures,
        list_exposed_names,
        quote_text,
        read_listed_exposures,
    )
    from ci_bot.bot.policy.model_owners import (
        MOST_CODEOWNERS_BYTES,
        Acceptances,
        CodeOwnersFile,
        ModelFiles,
        ModelOwnership,
        find_ownership,
        list_fingerprints,
        may_be_accepted,
    )
    from ci_bot.bot.policy.policy import (
        IgnoreComments,
        Policy,
        ScopeMatches,
        compare_ignore_comments,
        find_ignore_comments,
        is_on_path,
        make_scope_key,
        may_ignore,
        why_not,
    )
    from ci_bot.bot.policy.policy_file import (
        FILE_NAME,
        MOST_POLICY_BYTES,
        UnfitPolicy,
        make_unfit_policy,
        read_policy,
    )
    from ci_bot.bot.policy.severity_overrides import (
        ChangeAuthors,
        PolicyWeighing,
        describe_entry,
    )
    from ci_bot.bot.policy.weighable_rules import UNWEIGHED, list_known_rules

__all__ = [
    "FILE_NAME",
    "MOST_CODEOWNERS_BYTES",
    "MOST_EXPOSURE_BYTES",
    "MOST_POLICY_BYTES",
    "UNWEIGHED",
    "Acceptances",
    "ChangeAuthors",
    "CodeOwnersFile",
    "Exposure",
    "IgnoreComments",
    "IgnoreEntry",
    "ModelFiles",
    "ModelOwnership",
    "Policy",
    "PolicyChange",
    "PolicyEntry",
    "PolicyFile",
    "PolicyWeighing",
    "ScopeMatches",
    "ScopedEntry",
    "UnfitPolicy",
    "compare_ignore_comments",
    "describe_entry",
    "describe_stale_exposures",
    "find_ignore_comments",
    "find_ownership",
    "is_on_path",
    "list_exposed_names",
    "list_fingerprints",
    "list_known_rules",
    "list_policy_changes",
    "make_scope_key",
    "make_unfit_policy",
    "may_be_accepted",
    "may_ignore",
    "quote_text",
    "read_listed_exposures",
    "read_policy",
    "render_policy_schema",
    "severity_overrides",
    "why_not",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "comparison": ["PolicyChange", "list_policy_changes"],
        "document": [
            "PolicyEntry",
            "PolicyFile",
            "IgnoreEntry",
            "ScopedEntry",
            "render_policy_schema",
        ],
        "exposures": [
            "Exposure",
            "MOST_EXPOSURE_BYTES",
            "describe_stale_exposures",
            "list_exposed_names",
            "quote_text",
            "read_listed_exposures",
        ],
        "model_owners": [
            "Acceptances",
            "CodeOwnersFile",
            "MOST_CODEOWNERS_BYTES",
            "ModelFiles",
            "ModelOwnership",
            "list_fingerprints",
            "may_be_accepted",
            "find_ownership",
        ],
        "policy": [
            "IgnoreComments",
            "ScopeMatches",
            "Policy",
            "compare_ignore_comments",
            "find_ignore_comments",
            "is_on_path",
            "may_ignore",
            "make_scope_key",
            "why_not",
        ],
        "policy_file": [
            "FILE_NAME",
            "MOST_POLICY_BYTES",
            "UnfitPolicy",
            "read_policy",
            "make_unfit_policy",
        ],
        "weighable_rules": ["UNWEIGHED", "list_known_rules"],
        "severity_overrides": ["ChangeAuthors", "PolicyWeighing", "describe_entry"],
    },
)
