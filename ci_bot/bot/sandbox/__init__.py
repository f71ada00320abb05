"""The cage: everything that starts, watches and ends the process which runs the PR's code.

What it keeps: the token and the runner's files stay out of reach (`launch`, `run_directories`,
another uid, no new privileges), nothing outlives the run (`process_tree`, `supervisor`), and only
an answer that is small, well-formed and about what was asked is trusted (`answer_validation`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.sandbox.answer_validation import AnswerRefusedError, check_json
    from ci_bot.bot.sandbox.checkout_copy import DURING_EXPORT, seal_tree
    from ci_bot.bot.sandbox.deadline import (
        CancelToken,
        Deadline,
        handle_signals,
        make_endless_deadline,
    )
    from ci_bot.bot.sandbox.launch import (
        CONTAINER_PATH,
        DOCKER_SOCKETS,
        MIB,
        WorkerIdentity,
        WorkerLaunch,
        WorkerVariables,
        build_worker_environment,
        make_redactor,
        parse_worker_variables,
        prepend_python_path,
    )
    from ci_bot.bot.sandbox.requirements import check_requirements, install_requirements
    from ci_bot.bot.sandbox.run_directories import (
        PREFIX,
        RunWorkspace,
        describe_directory_problem,
        hold_directory,
        open_private_workspace,
        read_inside,
        resolve_inside,
        resolve_project_paths,
        search_path,
    )
    from ci_bot.bot.sandbox.worker_output import (
        JAVA_READS,
        TracebackFilter,
        TraceReader,
        list_opened_among,
    )
    from ci_bot.bot.sandbox.worker_run import (
        NOT_ASKED,
        SUSPECT_CODE_ON_LOAD,
        SecondQuestion,
        WorkerCancelled,
        WorkerTimedOut,
        run_worker,
    )

__all__ = [
    "CONTAINER_PATH",
    "DOCKER_SOCKETS",
    "DURING_EXPORT",
    "JAVA_READS",
    "MIB",
    "NOT_ASKED",
    "PREFIX",
    "SUSPECT_CODE_ON_LOAD",
    "AnswerRefusedError",
    "CancelToken",
    "Deadline",
    "RunWorkspace",
    "SecondQuestion",
    "TraceReader",
    "TracebackFilter",
    "WorkerCancelled",
    "WorkerIdentity",
    "WorkerLaunch",
    "WorkerTimedOut",
    "WorkerVariables",
    "build_worker_environment",
    "check_json",
    "check_requirements",
    "describe_directory_problem",
    "handle_signals",
    "hold_directory",
    "install_requirements",
    "list_opened_among",
    "make_endless_deadline",
    "make_redactor",
    "open_private_workspace",
    "parse_worker_variables",
    "prepend_python_path",
    "read_inside",
    "resolve_inside",
    "resolve_project_paths",
    "run_worker",
    "seal_tree",
    "search_path",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "answer_validation": ["AnswerRefusedError", "check_json"],
        "checkout_copy": ["DURING_EXPORT", "seal_tree"],
        "deadline": ["CancelToken", "Deadline", "handle_signals", "make_endless_deadline"],
        "launch": [
            "MIB",
            "DOCKER_SOCKETS",
            "WorkerIdentity",
            "WorkerLaunch",
            "CONTAINER_PATH",
            "WorkerVariables",
            "build_worker_environment",
            "parse_worker_variables",
            "make_redactor",
            "prepend_python_path",
        ],
        "worker_output": ["JAVA_READS", "TraceReader", "list_opened_among", "TracebackFilter"],
        "requirements": ["check_requirements", "install_requirements"],
        "run_directories": [
            "PREFIX",
            "RunWorkspace",
            "describe_directory_problem",
            "hold_directory",
            "resolve_inside",
            "open_private_workspace",
            "resolve_project_paths",
            "read_inside",
            "search_path",
        ],
        "worker_run": [
            "NOT_ASKED",
            "SUSPECT_CODE_ON_LOAD",
            "SecondQuestion",
            "WorkerCancelled",
            "WorkerTimedOut",
            "run_worker",
        ],
    },
)
