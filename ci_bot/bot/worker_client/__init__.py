"""What the bot does without GitHub: a review, an apply, a cleanup, a sweep, from request to report.

The command line and `ci-bot run` both come through here, so that a laptop and a workflow get the
same reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.worker_client import apply, base_branch, cleanup, costs, doctor, review
    from ci_bot.bot.worker_client.changed_files import changed_by, file_content
    from ci_bot.bot.worker_client.cleanup import SweepOptions, SweptEnvironment
    from ci_bot.bot.worker_client.client import (
        ClientOptions,
        WorkerClient,
        WorkListener,
        make_owner,
        run_owner,
    )
    from ci_bot.bot.worker_client.costs import (
        OTHER_SPARK,
        describe_learned,
        request_estimate,
        request_learn,
    )
    from ci_bot.bot.worker_client.drift import DriftOptions, find_drift
    from ci_bot.bot.worker_client.failures import error_of, failure_of, refused_failure
    from ci_bot.bot.worker_client.review_options import ReviewCommits, ReviewOptions
    from ci_bot.bot.worker_client.session import (
        describe_ignored_prefix,
        open_client,
        prefix_here,
        prefix_of,
    )
    from ci_bot.bot.worker_client.team_policy import (
        TeamPolicy,
        agreed_on_cost,
        check_selections,
        of_base,
        of_working_tree,
    )

__all__ = [
    "OTHER_SPARK",
    "ClientOptions",
    "DriftOptions",
    "ReviewCommits",
    "ReviewOptions",
    "SweepOptions",
    "SweptEnvironment",
    "TeamPolicy",
    "WorkListener",
    "WorkerClient",
    "agreed_on_cost",
    "apply",
    "base_branch",
    "changed_by",
    "check_selections",
    "cleanup",
    "costs",
    "describe_ignored_prefix",
    "describe_learned",
    "doctor",
    "error_of",
    "failure_of",
    "file_content",
    "find_drift",
    "make_owner",
    "of_base",
    "of_working_tree",
    "open_client",
    "prefix_here",
    "prefix_of",
    "refused_failure",
    "request_estimate",
    "request_learn",
    "review",
    "run_owner",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "apply": [],
        "base_branch": [],
        "changed_files": ["changed_by", "file_content"],
        "cleanup": ["SweepOptions", "SweptEnvironment"],
        "client": ["ClientOptions", "WorkListener", "WorkerClient", "make_owner", "run_owner"],
        "costs": ["OTHER_SPARK", "request_estimate", "request_learn", "describe_learned"],
        "doctor": [],
        "drift": ["DriftOptions", "find_drift"],
        "failures": ["error_of", "failure_of", "refused_failure"],
        "review": [],
        "review_options": ["ReviewCommits", "ReviewOptions"],
        "session": ["open_client", "prefix_here", "prefix_of", "describe_ignored_prefix"],
        "team_policy": [
            "TeamPolicy",
            "agreed_on_cost",
            "check_selections",
            "of_base",
            "of_working_tree",
        ],
    },
)
