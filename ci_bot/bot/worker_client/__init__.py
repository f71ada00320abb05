"""What the bot does without GitHub: a review, an apply, a cleanup, a sweep, from request to report.

The command line and `ci-bot run` both come through here, so that a laptop and a workflow get the
same reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.worker_client import apply, base_branch, cleanup, review
    from ci_bot.bot.worker_client.apply import request_estimate
    from ci_bot.bot.worker_client.cleanup import SweepOptions, SweptEnvironment
    from ci_bot.bot.worker_client.client import (
        ClientOptions,
        WorkerClient,
        WorkListener,
        make_owner,
        run_owner,
    )
    from ci_bot.bot.worker_client.failures import (
        make_activity_failure,
        make_bad_input,
        make_error_of_failure,
        make_refused_failure,
    )
    from ci_bot.bot.worker_client.review_subject import (
        ReviewCommits,
        ReviewOptions,
        list_changes_of_pull,
        read_file_content,
    )
    from ci_bot.bot.worker_client.session import (
        describe_ignored_prefix,
        open_client,
        read_environment_prefix,
        read_laptop_prefix,
    )
    from ci_bot.bot.worker_client.surveys import (
        OTHER_SPARK,
        DriftOptions,
        describe_learned,
        find_doctor_exit_code,
        find_drift,
        make_failed_doctor_document,
        request_doctor,
        request_exposures,
        request_learn,
    )
    from ci_bot.bot.worker_client.team_policy import (
        TeamPolicy,
        check_selections,
        read_agreed_cost,
        read_base_policy,
        read_working_tree_policy,
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
    "apply",
    "base_branch",
    "check_selections",
    "cleanup",
    "describe_ignored_prefix",
    "describe_learned",
    "find_doctor_exit_code",
    "find_drift",
    "list_changes_of_pull",
    "make_activity_failure",
    "make_bad_input",
    "make_error_of_failure",
    "make_failed_doctor_document",
    "make_owner",
    "make_refused_failure",
    "open_client",
    "read_agreed_cost",
    "read_base_policy",
    "read_environment_prefix",
    "read_file_content",
    "read_laptop_prefix",
    "read_working_tree_policy",
    "request_doctor",
    "request_estimate",
    "request_exposures",
    "request_learn",
    "review",
    "run_owner",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "apply": ["request_estimate"],
        "base_branch": [],
        "review_subject": [
            "list_changes_of_pull",
            "read_file_content",
            "ReviewCommits",
            "ReviewOptions",
        ],
        "cleanup": ["SweepOptions", "SweptEnvironment"],
        "client": ["ClientOptions", "WorkListener", "WorkerClient", "make_owner", "run_owner"],
        "surveys": [
            "OTHER_SPARK",
            "request_learn",
            "describe_learned",
            "request_exposures",
            "DriftOptions",
            "find_drift",
            "find_doctor_exit_code",
            "make_failed_doctor_document",
            "request_doctor",
        ],
        "failures": [
            "make_error_of_failure",
            "make_activity_failure",
            "make_bad_input",
            "make_refused_failure",
        ],
        "review": [],
        "session": [
            "open_client",
            "read_laptop_prefix",
            "read_environment_prefix",
            "describe_ignored_prefix",
        ],
        "team_policy": [
            "TeamPolicy",
            "read_agreed_cost",
            "check_selections",
            "read_base_policy",
            "read_working_tree_policy",
        ],
    },
)
