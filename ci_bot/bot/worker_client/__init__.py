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
        Listener,
        WorkerClient,
        owner,
        run_owner,
    )
    from ci_bot.bot.worker_client.costs import estimate, learn, sentence
    from ci_bot.bot.worker_client.failures import error_of, failure_of, refused
    from ci_bot.bot.worker_client.review_options import Commits, ReviewOptions
    from ci_bot.bot.worker_client.session import open_client, prefix_here, prefix_of, told
    from ci_bot.bot.worker_client.team_policy import (
        TeamPolicy,
        agreed_on_cost,
        check_selections,
        of_base,
        of_working_tree,
    )

__all__ = [
    "ClientOptions",
    "Commits",
    "Listener",
    "ReviewOptions",
    "SweepOptions",
    "SweptEnvironment",
    "TeamPolicy",
    "WorkerClient",
    "agreed_on_cost",
    "apply",
    "base_branch",
    "changed_by",
    "check_selections",
    "cleanup",
    "costs",
    "doctor",
    "error_of",
    "estimate",
    "failure_of",
    "file_content",
    "learn",
    "of_base",
    "of_working_tree",
    "open_client",
    "owner",
    "prefix_here",
    "prefix_of",
    "refused",
    "review",
    "run_owner",
    "sentence",
    "told",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "apply": [],
        "base_branch": [],
        "changed_files": ["changed_by", "file_content"],
        "cleanup": ["SweepOptions", "SweptEnvironment"],
        "client": ["ClientOptions", "Listener", "WorkerClient", "owner", "run_owner"],
        "costs": ["estimate", "learn", "sentence"],
        "doctor": [],
        "failures": ["error_of", "failure_of", "refused"],
        "review": [],
        "review_options": ["Commits", "ReviewOptions"],
        "session": ["open_client", "prefix_here", "prefix_of", "told"],
        "team_policy": [
            "TeamPolicy",
            "agreed_on_cost",
            "check_selections",
            "of_base",
            "of_working_tree",
        ],
    },
)
