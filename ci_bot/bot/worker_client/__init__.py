"""What the bot does without GitHub: a review, an apply, a cleanup, a sweep, from request to report.

Both the command line and `ci-bot run` use this package, so a laptop and a workflow get the same
reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.worker_client import apply, base_branch, cleanup, review
    from ci_bot.bot.worker_client.apply import request_estimate_from_worker
    from ci_bot.bot.worker_client.cleanup import EnvironmentSweptByWorker, WorkerSweepOptions
    from ci_bot.bot.worker_client.client import WorkerClient, WorkerClientOptions, WorkListener
    from ci_bot.bot.worker_client.failures import (
        make_activity_failure_of_worker,
        make_bad_input_of_request,
        make_error_of_worker_failure,
        make_failure_of_refused_request,
    )
    from ci_bot.bot.worker_client.review_subject import (
        RequestedReviewCommits,
        WorkerReviewOptions,
        list_changes_of_pull_for_request,
        read_file_content_for_request,
    )
    from ci_bot.bot.worker_client.session import (
        describe_prefix_ignored_by_client,
        open_worker_client,
        read_environment_prefix_for_worker,
        read_laptop_prefix_for_worker,
    )
    from ci_bot.bot.worker_client.surveys import (
        OTHER_SPARK,
        WorkerDriftOptions,
        choose_exit_code_of_worker_doctor,
        describe_costs_learned_by_worker,
        make_failed_doctor_document_for_worker,
        request_doctor_from_worker,
        request_drift_from_worker,
        request_exposures_from_worker,
        request_learn_from_worker,
    )
    from ci_bot.bot.worker_client.team_policy import (
        RequestedTeamPolicy,
        check_selections_answered_by_worker,
        read_agreed_cost_for_request,
        read_base_policy_for_request,
        read_working_tree_policy_for_request,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "apply": ["request_estimate_from_worker"],
        "base_branch": [],
        "review_subject": [
            "list_changes_of_pull_for_request",
            "read_file_content_for_request",
            "RequestedReviewCommits",
            "WorkerReviewOptions",
        ],
        "cleanup": ["WorkerSweepOptions", "EnvironmentSweptByWorker"],
        "client": [
            "WorkerClientOptions",
            "WorkListener",
            "WorkerClient",
        ],
        "surveys": [
            "OTHER_SPARK",
            "request_learn_from_worker",
            "describe_costs_learned_by_worker",
            "request_exposures_from_worker",
            "WorkerDriftOptions",
            "request_drift_from_worker",
            "choose_exit_code_of_worker_doctor",
            "make_failed_doctor_document_for_worker",
            "request_doctor_from_worker",
        ],
        "failures": [
            "make_error_of_worker_failure",
            "make_activity_failure_of_worker",
            "make_bad_input_of_request",
            "make_failure_of_refused_request",
        ],
        "review": [],
        "session": [
            "open_worker_client",
            "read_laptop_prefix_for_worker",
            "read_environment_prefix_for_worker",
            "describe_prefix_ignored_by_client",
        ],
        "team_policy": [
            "RequestedTeamPolicy",
            "read_agreed_cost_for_request",
            "check_selections_answered_by_worker",
            "read_base_policy_for_request",
            "read_working_tree_policy_for_request",
        ],
    },
)
