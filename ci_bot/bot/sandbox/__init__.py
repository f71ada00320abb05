"""The cage: starts, watches and ends the process which runs the PR's code; and git on its checkout.

It holds three things: the token and the runner's files stay out of reach (`process_secrecy`,
`launch`, `run_directories`, another uid, no new privileges); nothing outlives the run
(`process_tree`, `supervisor`); and an answer is trusted only if it is small, well-formed and about
what was asked (`answer_validation`). Git reads a checkout without running anything that is
configured in it (`git_program`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.sandbox.answer_validation import (
        SandboxedAnswerRefusedError,
        check_json_of_sandboxed_worker,
    )
    from ci_bot.bot.sandbox.deadline import (
        SandboxCancelToken,
        SandboxDeadline,
        handle_signals_of_sandbox,
        make_endless_sandbox_deadline,
    )
    from ci_bot.bot.sandbox.early_worker import (
        start_early_worker_in_workflow,
        start_early_worker_on_laptop,
    )
    from ci_bot.bot.sandbox.git_objects import GitBlob
    from ci_bot.bot.sandbox.git_program import NO_GIT
    from ci_bot.bot.sandbox.git_repository import FilesMissingInGit, GitFile, GitRepository
    from ci_bot.bot.sandbox.launch import (
        DOCKER_SOCKETS,
        MIB,
        SandboxIdentity,
        SandboxLaunch,
        SandboxVariables,
        build_environment_on_machine,
        make_redactor_for_sandbox,
        parse_sandbox_variables,
        prepend_python_path_in_sandbox,
    )
    from ci_bot.bot.sandbox.process_secrecy import keep_secrets_of_action
    from ci_bot.bot.sandbox.requirements import (
        check_requirements_before_sandbox,
        install_requirements_in_sandbox,
    )
    from ci_bot.bot.sandbox.run_directories import (
        PREFIX,
        SandboxWorkspace,
        describe_problem_of_sandbox_directory,
        hold_private_directory_of_run,
        list_search_path_of_sandbox,
        open_sandbox_workspace,
        read_file_inside_sandbox,
        resolve_inside_checkout,
        resolve_project_paths_for_sandbox,
    )
    from ci_bot.bot.sandbox.start_command import CONTAINER_PATH
    from ci_bot.bot.sandbox.worker_output import (
        JAVA_READS,
        SandboxedTracebackFilter,
        SandboxedTraceReader,
        list_files_opened_in_sandbox,
    )
    from ci_bot.bot.sandbox.worker_run import (
        NOT_ASKED,
        SUSPECT_CODE_ON_LOAD,
        SandboxedWorkerCancelled,
        SandboxedWorkerTimedOut,
        SecondSandboxedQuestion,
        run_worker_in_sandbox,
    )

__getattr__ = open_on_demand(
    __name__,
    {
        "answer_validation": ["SandboxedAnswerRefusedError", "check_json_of_sandboxed_worker"],
        "deadline": [
            "SandboxCancelToken",
            "SandboxDeadline",
            "handle_signals_of_sandbox",
            "make_endless_sandbox_deadline",
        ],
        "git_objects": ["GitBlob"],
        "git_program": ["NO_GIT"],
        "git_repository": ["FilesMissingInGit", "GitFile", "GitRepository"],
        "early_worker": ["start_early_worker_in_workflow", "start_early_worker_on_laptop"],
        "launch": [
            "MIB",
            "DOCKER_SOCKETS",
            "SandboxIdentity",
            "SandboxLaunch",
            "SandboxVariables",
            "build_environment_on_machine",
            "parse_sandbox_variables",
            "make_redactor_for_sandbox",
            "prepend_python_path_in_sandbox",
        ],
        "worker_output": [
            "JAVA_READS",
            "SandboxedTraceReader",
            "list_files_opened_in_sandbox",
            "SandboxedTracebackFilter",
        ],
        "start_command": ["CONTAINER_PATH"],
        "process_secrecy": ["keep_secrets_of_action"],
        "requirements": ["check_requirements_before_sandbox", "install_requirements_in_sandbox"],
        "run_directories": [
            "PREFIX",
            "SandboxWorkspace",
            "describe_problem_of_sandbox_directory",
            "hold_private_directory_of_run",
            "resolve_inside_checkout",
            "open_sandbox_workspace",
            "resolve_project_paths_for_sandbox",
            "read_file_inside_sandbox",
            "list_search_path_of_sandbox",
        ],
        "worker_run": [
            "NOT_ASKED",
            "SUSPECT_CODE_ON_LOAD",
            "SecondSandboxedQuestion",
            "SandboxedWorkerCancelled",
            "SandboxedWorkerTimedOut",
            "run_worker_in_sandbox",
        ],
    },
)
