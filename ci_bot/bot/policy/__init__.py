"""A team's own policy: read from a file as data, checked, compared, and applied to findings."""

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
        PolicyExposure,
        describe_stale_policy_exposures,
        list_names_exposed_by_policy,
        read_exposures_listed_by_policy,
    )
    from ci_bot.bot.policy.model_owners import (
        MOST_CODEOWNERS_BYTES,
        AcceptancesByOwners,
        CodeOwnersFile,
        FilesOfOwnedModels,
        ModelOwnershipByPolicy,
        find_ownership_by_policy,
        list_fingerprints_for_acceptances,
        may_be_accepted_by_owner,
    )
    from ci_bot.bot.policy.policy import (
        Policy,
        PolicyIgnoreComments,
        PolicyScopeMatches,
        compare_ignore_comments_for_policy,
        explain_why_ignore_comment_never_counts,
        find_ignore_comments_for_policy,
        is_policy_entry_on_path,
        make_scope_key_of_policy_entry,
        may_ignore_comment_count,
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
        describe_policy_entry,
    )
    from ci_bot.bot.policy.weighable_rules import UNWEIGHED, list_rules_that_policy_may_weigh

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
            "PolicyExposure",
            "MOST_EXPOSURE_BYTES",
            "describe_stale_policy_exposures",
            "list_names_exposed_by_policy",
            "read_exposures_listed_by_policy",
        ],
        "model_owners": [
            "AcceptancesByOwners",
            "CodeOwnersFile",
            "MOST_CODEOWNERS_BYTES",
            "FilesOfOwnedModels",
            "ModelOwnershipByPolicy",
            "list_fingerprints_for_acceptances",
            "may_be_accepted_by_owner",
            "find_ownership_by_policy",
        ],
        "policy": [
            "PolicyIgnoreComments",
            "PolicyScopeMatches",
            "Policy",
            "compare_ignore_comments_for_policy",
            "find_ignore_comments_for_policy",
            "is_policy_entry_on_path",
            "may_ignore_comment_count",
            "make_scope_key_of_policy_entry",
            "explain_why_ignore_comment_never_counts",
        ],
        "policy_file": [
            "FILE_NAME",
            "MOST_POLICY_BYTES",
            "UnfitPolicy",
            "read_policy",
            "make_unfit_policy",
        ],
        "weighable_rules": ["UNWEIGHED", "list_rules_that_policy_may_weigh"],
        "severity_overrides": ["ChangeAuthors", "PolicyWeighing", "describe_policy_entry"],
    },
)
