"""Every reason code: the one stable word for why a run ended as it did.

Workflows have conditions on them. So a code never changes its meaning, and never goes away in a
patch release. The worker's codes are apart from the bot's own: the worker runs the pull request's
code, and a word that it invents must not look like one of ours.

The sentences of refusals are here if either process may find the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "failed"

# Results of an apply, which are no failures.
RESULTS: Mapping[str, str] = {
    "already_applied": "the environment holds the reviewed plan already, and Spark has its views",
    "evidence_collected": "nothing was left to build, and the environment was checked",
    "no_changes": "the project equals prod",
    "nothing_to_probe": "no model of the plan has a batch that says something about the others",
    "probed": "the newest batch of models was built, and nothing else",
    "views_made_again": "views of the built environment were gone, and are there again",
}

OF_THE_WORKER: Mapping[str, str] = {
    "asks_for_input": "the project waits for somebody to type",
    "bad_config": "the configuration cannot be read",
    "bad_date": "`start`, `end` or `preview-start` is no date",
    "bad_environment": "the name is not one of an environment",
    "bad_input": "a value cannot be used",
    "bad_prefix": "the prefix is none for names of environments",
    "bad_selection": "a selection of models cannot be read",
    "bad_window": "`start` is not before the end",
    "cancelled": "the run was stopped",
    "claim": "a workflow cannot claim an environment",
    "dbt_project": "the project is one of dbt's, and cannot be read or compared here",
    "default_target": "the environment is where the project's plans go by default",
    "ends_the_process": "the project's code ends the process while it is loaded",
    "failed": "SQLMesh, Spark or the project failed",
    "foreign_objects": "the environment's schema holds what is not ours",
    "held": "another run holds the environment",
    "incomplete": "something is left over",
    "lease_lost": "another run took the environment meanwhile",
    "ledger_hidden": "the account of the state may not read the tables of this bot",
    "ledger_too_new": "a newer version of ci-bot has written the ledger",
    "leftovers": "something could not be removed",
    "loads_code": "a new statement brings a program into Spark",
    "merge_unsupported": "Spark cannot merge into a table of the plan",
    "missing_file": "the project reads a file that is not there",
    "missing_module": "a Python module is not installed here",
    "missing_variable": "a variable of the environment is not set",
    "no_base": "there is nothing to compare with",
    "no_config": "the project's directory holds no configuration",
    "no_event_logs": "the directory of event logs cannot be read",
    "no_java": "no Java, or none that this Spark runs on",
    "no_more_processes": "the worker could start no more processes while the project was loaded",
    "no_prod": "there is no prod environment yet",
    "no_project": "the project's directory does not exist",
    "no_spark": "this image has no Spark",
    "no_views": "a view was not made",
    "not_a_pr_environment": "the name is not one of a pull request's environment",
    "not_ours": "the environment belongs to somebody else",
    "not_restatable": "SQLMesh builds nothing of this model again",
    "not_spark": "the gateway's engine is not Spark",
    "not_verified": "the environment is built, and could not be checked",
    "other_owner": "the environment belongs to another repository",
    "other_project": "the plan would remove models of another project",
    "outside_window": "there is work outside the reviewed window",
    "over_budget": "building would take more than `max-executor-hours`",
    "pinned": "the environment is pinned in the configuration",
    "plan_changed": "the plan is not the reviewed one",
    "prod": "prod is never written from here",
    "project_keys": "several projects on one state lack a `project:` key",
    "refused": "the request is refused",
    "restates_prod": "the model to restate is one that prod uses",
    "spark_not_started": "Spark does not start",
    "sqlmesh_version": "this release does not work with that version of SQLMesh",
    "state_locked": "another process holds the state's file",
    "state_unreachable": "the state database does not answer",
    "state_untried": "nobody has tried leases on this kind of state database",
    "state_version": "the state is of another version of SQLMesh",
    "statement_fails": "a new statement fails on Spark",
    "stop_requested": "a cleanup asked this apply to stop",
    "suffix_target": "environments that are catalogs cannot be removed on Spark",
    "uncategorized": "a change has no category",
    "unknown_gateway": "the configuration has no such gateway",
    "unknown_model": "the project has no such model",
    "unknown_statement": "a new statement cannot be judged",
    "views_do_not_resolve": "a view of the environment cannot be read",
    "worker_crashed": "a process ended without an answer",
    "worker_ended": "the apply ended without a word",
    "would_write_prod": "the plan would change a table that prod reads",
    "writes_elsewhere": "a new statement writes outside of the environment",
}

# Separate, so that the search for passwords in the source can skip these lines alone.
_OF_TOKENS = {
    "missing_token": "there is no token",  # nosec B105
    "token_in_worker_env": "`worker-env` would hand the token to the worker",  # nosec B105
}
OF_THE_BOT: Mapping[str, str] = dict(
    sorted(
        {
            "ambiguous_head": "several pull requests have this head",
            "answer_refused": "the worker's answer cannot be trusted",
            "artifact_gone": "the review's artifact has expired",
            "artifact_refused": "the review's artifact cannot be trusted",
            "bad_api_url": "the API's address is none that a token may be sent to",
            "bad_comment": "the comment is not what it was, or no command",
            "bad_commit": "a commit id is none",
            "bad_credentials": "GitHub does not accept the token",
            "bad_path": "a path is none",
            "bad_policy": "the team's policy cannot be used",
            "bad_project_path": "`project` names no directory of the repository",
            "bad_python_path": "`python-path` names no directory of the repository",
            "bad_requirements": "the requirements hold more than wheels from an index",
            "bad_revision": "there is no such branch, tag or commit",
            "bad_worker_env": "`worker-env` names what the worker must not see",
            "base_commit_missing": "the checkout lacks the base commit",
            "cannot_drop_privileges": "the container does not run as root",
            "closed": "the pull request is closed",
            "conflict": "the pull request has a conflict with its base",
            "conversation_locked": "the conversation is locked",
            "defect": "something happened that ci-bot does not know",
            "demo_data_missing": "the demo's data is not installed",
            "demo_failed": "the demo's prod could not be built",
            "disk_full": "the disk of the temporary directory is full",
            "disk_limit": "the worker left too little of the disk free",
            "draft": "the pull request is a draft",
            "event_unreadable": "the event file cannot be read",
            "foreign_file": "somebody else's file has the name of one of ours",
            "fork": "the pull request comes from a fork",
            "git_failed": "git cannot read the checkout",
            "github_rejected": "GitHub refused a request",
            "github_unavailable": "GitHub does not answer",
            "github_unexpected": "GitHub's answer makes no sense",
            "head_moved": "somebody has pushed since the review",
            "memory_limit": "the worker needed too much memory",
            "memory_stays_open": "the bot's memory cannot be closed to the project's code",
            "missing_permission": "the token lacks a permission",
            "missing_pr_number": "no pull request is named",
            **_OF_TOKENS,
            "mode_mismatch": "`mode` cannot be done on this event",
            "no_certificates": "the certificates that a variable names are not there",
            "no_commit": "the checkout has no commit",
            "no_container": "a workflow runs the bot without its container",
            "no_default_branch": "the event does not name the default branch",
            "no_go": "the plan is No-Go",
            "no_repository": "the directory is in no git repository",
            "no_reviewed_plan": "nothing was reviewed yet",
            "not_empty": "the directory for the demo is not empty",
            "no_such_restatement": "no restatement of the model is recorded",
            "no_such_finding": "the review has no such finding, or it does not count already",
            "no_tls": "the server does not speak https",
            "not_acceptable": "an owner cannot accept this finding",
            "not_the_owner": "the person who asked does not own the model",
            "not_found": "GitHub finds nothing there",
            "not_reported": "GitHub did not take a report that is heavier than the comment",
            "nothing_to_post": "there is no report of a fork to post",
            "open_door": "the worker could write to a file of the runner",
            "other_checkout": "a doctor would load another commit than its workflow's",
            "output": "the report's files cannot be written",
            "override_permission": "an override takes maintain access",
            "path_outside": "a path leads out of the repository",
            "permission": "the person who asked may not do that",
            "proxy_failed": "the proxy does not connect",
            "rate_limited": "GitHub's rate limit holds",
            "redirected": "GitHub redirects elsewhere",
            "reopened": "the pull request was opened again",
            "report_refused": "the report of a fork's review cannot be trusted",
            "requirements_failed": "the requirements could not be installed",
            "restatement_changed": "a recorded restatement is not what was reviewed any more",
            "review_beside_writer": "a review would run beside the writer's credentials",
            "several_repositories": "the projects are not in one repository",
            "several_projects": "several projects are there, and none is named",
            "timeout": "the run was not over when its time was",
            "too_large": "a file is too large",
            "too_many_files": "more files are changed than a review looks at",
            "unknown_api": "the address of GitHub's API is not known",
            "unknown_host": "the name of the API's host has no address",
            "unknown_plan": "the plan id is not the reviewed one",
            "unknown_repository": "the repository on GitHub is not known",
            "unknown_rule": "there is no such rule",
            "unsafe_trigger": "the workflow's trigger would run foreign code beside secrets",
            "untrusted_base": "the base of the pull request is no branch whose policy counts",
            "untrusted_certificate": "the server's certificate is not trusted",
            "worker_failed": "the worker gave no answer that can be trusted",
            "worker_is_root": "the worker would run as root",
            "worker_not_started": "the worker could not be started",
            "workflow_not_started": "the review's workflow could not be started",
            "workspace_left": "the private directory could not be removed",
            "wrong_checkout": "the checkout is not this pull request's",
            "wrong_certificate": "the server's certificate has expired, or is of another host",
        }.items()
    )
)


def normalize_failure_code(code: str) -> str:
    """Returns the worker's code of a failure; an unknown word becomes `failed`."""
    return code if code in OF_THE_WORKER else UNKNOWN


def normalize_result_code(code: str | None) -> str | None:
    """Returns the worker's code of a whole document, which may also be that of a result."""
    return None if code is None else code if code in RESULTS else normalize_failure_code(code)


REVIEW_AGAIN = "Review again, then apply the new plan id."

UNCATEGORIZED_HINT = (
    "Switch automatic categorization on for them, or apply from a terminal with `sqlmesh plan`, "
    "which asks."
)


def describe_other_plan(requested: str | None, now: str | None) -> str:
    """Writes the sentence on a plan that is not the reviewed one.

    Args:
        requested: The plan id that was asked for, if there is one.
        now: The plan id of the current plan, if there is one.
    """
    # It needs pydantic, and an event that needs nothing does not wait for that.
    from ci_bot.protocol.base import shorten_plan_id

    return (
        f"The plan is no longer the reviewed one: asked for {shorten_plan_id(requested)}, "
        f"the current plan is {shorten_plan_id(now)}."
    )


def describe_uncategorized(models: str) -> str:
    """Writes the sentence on changes that SQLMesh gave no category; `models` are their names."""
    return f"These changes have no category, so SQLMesh cannot apply them: {models}."
