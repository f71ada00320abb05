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
        parse_comment_command,
    )
    from ci_bot.bot.actions.event import (
        DEPENDABOT,
        EVENT_FILE_HINT,
        GHOST,
        is_repository_in_event,
        is_same_repository_in_event,
        read_github_event,
    )
    from ci_bot.bot.actions.inputs import (
        ALLOW_UNCAGED,
        NO_CHANGES,
        ActionInputs,
        ActionSettings,
        BaselineInput,
        Color,
        FailOn,
        ReclaimInput,
        make_variable_name_of_input,
        read_action_settings,
    )
    from ci_bot.bot.actions.workflow_commands import (
        ActionStepOutputs,
        ActionStepSummary,
        WorkflowCommands,
    )

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
            "parse_comment_command",
        ],
        "event": [
            "EVENT_FILE_HINT",
            "DEPENDABOT",
            "GHOST",
            "is_repository_in_event",
            "read_github_event",
            "is_same_repository_in_event",
        ],
        "inputs": [
            "ALLOW_UNCAGED",
            "BaselineInput",
            "ActionInputs",
            "ReclaimInput",
            "ActionSettings",
            "make_variable_name_of_input",
            "read_action_settings",
            "Color",
            "FailOn",
            "NO_CHANGES",
        ],
        "workflow_commands": ["ActionStepOutputs", "ActionStepSummary", "WorkflowCommands"],
    },
)
