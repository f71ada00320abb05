"""GitHub Actions: the event, inputs and commands that come in, and the files that steps write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_bot.entrance import open_on_demand

if TYPE_CHECKING:
    from ci_bot.bot.actions import activities, choose_activity, comment_command, inputs
    from ci_bot.bot.actions.comment_command import (
        AcceptCommand,
        ApplyCommand,
        CleanupCommand,
        EstimateCommand,
        RestateCommand,
        parse_command,
    )
    from ci_bot.bot.actions.event import (
        DEPENDABOT,
        EVENT_FILE_HINT,
        GHOST,
        is_repository,
        is_same_repository,
        read_event,
    )
    from ci_bot.bot.actions.inputs import (
        ALLOW_UNCAGED,
        NO_CHANGES,
        BaselineInput,
        Color,
        FailOn,
        Inputs,
        ReclaimInput,
        Settings,
        make_variable_name,
        read_settings,
    )
    from ci_bot.bot.actions.process_secrecy import keep_secrets
    from ci_bot.bot.actions.workflow_commands import StepOutputs, StepSummary, WorkflowCommands

__all__ = [
    "ALLOW_UNCAGED",
    "DEPENDABOT",
    "EVENT_FILE_HINT",
    "GHOST",
    "NO_CHANGES",
    "AcceptCommand",
    "ApplyCommand",
    "BaselineInput",
    "CleanupCommand",
    "Color",
    "EstimateCommand",
    "FailOn",
    "Inputs",
    "ReclaimInput",
    "RestateCommand",
    "Settings",
    "StepOutputs",
    "StepSummary",
    "WorkflowCommands",
    "activities",
    "choose_activity",
    "comment_command",
    "inputs",
    "is_repository",
    "is_same_repository",
    "keep_secrets",
    "make_variable_name",
    "parse_command",
    "read_event",
    "read_settings",
]

__getattr__ = open_on_demand(
    __name__,
    {
        "activities": [],
        "choose_activity": [],
        "comment_command": [
            "AcceptCommand",
            "ApplyCommand",
            "CleanupCommand",
            "EstimateCommand",
            "RestateCommand",
            "parse_command",
        ],
        "event": [
            "EVENT_FILE_HINT",
            "DEPENDABOT",
            "GHOST",
            "is_repository",
            "read_event",
            "is_same_repository",
        ],
        "inputs": [
            "ALLOW_UNCAGED",
            "BaselineInput",
            "Inputs",
            "ReclaimInput",
            "Settings",
            "make_variable_name",
            "read_settings",
            "Color",
            "FailOn",
            "NO_CHANGES",
        ],
        "process_secrecy": ["keep_secrets"],
        "workflow_commands": ["StepOutputs", "StepSummary", "WorkflowCommands"],
    },
)
