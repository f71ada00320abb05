"""Somebody writes `/sqlmesh ...` on a pull request: it is checked here and done elsewhere.

This job holds a token and runs no code of the pull request: no checkout, no worker, no warehouse.
Another workflow does what the comment asks for, and this job starts it on the default branch. A
plan is done by the review's workflow, whose credentials can only read; everything else by the
apply's workflow, which reads the comment again before it trusts it.

Numbers of requests, if all goes well: `help` 3, `status` 6, `apply` 7, the others 5. A person
without write access causes 3.
"""

from __future__ import annotations

from ci_bot.bot.actions import EVENT_FILE_HINT, activities, comment_command
from ci_bot.bot.github import GitHub, Permission, PullRequest, Reaction, may_write_on_github
from ci_bot.bot.handlers.gate import (
    ApplyRequester,
    UnmetApplyCondition,
    list_gate_conditions_to_load,
    list_unmet_conditions_of_apply_gate,
)
from ci_bot.bot.handlers.handler import Handler, HandlerContext
from ci_bot.bot.handlers.publisher import HandlerPublisher
from ci_bot.bot.report import notices
from ci_bot.bot.worker_client import make_activity_failure_of_worker
from ci_bot.errors import EXIT_BAD_INPUT, EXIT_DONE, BadInput, BotError, RequestRefused
from ci_bot.protocol.rules import UnknownRule, find_rule

# The file names under which people copy the examples. The event of a comment names no workflow.
APPLY, REVIEW = "apply.yml", "review.yml"


class CommandHandler(Handler[activities.CommentCommand]):
    """Answers a comment, or starts the workflow that does what it asks for."""

    needs_worker = False

    def run(self, activity: activities.CommentCommand, context: HandlerContext) -> int:
        """Answers the comment, or starts what it asks for; returns the exit code."""
        publisher, github = context.publisher, context.github
        try:
            permission = github.get_permission(activity.author)
            if not may_write_on_github(permission):
                raise _make_permission_error(activity.author, permission)
            _add_reaction(activity, publisher, github, "eyes")
            return _carry_out_comment_command(activity, publisher, github, permission)
        except BotError as error:
            return _refuse_command(activity, publisher, github, error)


def _carry_out_comment_command(
    activity: activities.CommentCommand,
    publisher: HandlerPublisher,
    github: GitHub,
    permission: Permission,
) -> int:
    line = activity.command
    if isinstance(line, comment_command.HelpCommand):
        return _answer_help_command(activity, line, publisher, github)
    if isinstance(line, comment_command.StatusCommand):
        found = publisher.sticky.find_comment() if publisher.sticky else None
        marker = found.marker if found else None
        url = found.comment.url if found else None
        publisher.post_note(
            notices.render_status_comment(marker, publisher.template, comment_url=url)
        )
        _add_reaction(activity, publisher, github, "rocket")
        _set_command_outputs(activity, publisher, "answered", marker.phase if marker else "no_plan")
        return EXIT_DONE
    _check_comment_command(activity, publisher, github.get_pull(activity.number), permission)
    workflow = REVIEW if isinstance(line, comment_command.PlanCommand) else APPLY
    github.dispatch_workflow(
        workflow,
        _get_workflow_branch(activity),
        _build_workflow_inputs(activity),
    )
    _set_command_outputs(activity, publisher, "started", "started")
    _add_reaction(activity, publisher, github, "rocket")
    publisher.commands.annotate_notice(
        f"Started {workflow} to {line.verb} pull request #{activity.number}, "
        f"as @{activity.author} asked."
    )
    return EXIT_DONE


def _answer_help_command(
    activity: activities.CommentCommand,
    line: comment_command.HelpCommand,
    publisher: HandlerPublisher,
    github: GitHub,
) -> int:
    publisher.post_note(
        notices.render_usage_comment(comment_command.USAGE, line.problem, publisher.template)
    )
    if line.problem is None:
        _set_command_outputs(activity, publisher, "answered", "help")
        return EXIT_DONE
    _add_reaction(activity, publisher, github, "-1")
    publisher.commands.annotate_error(
        f"The comment is no command that is known here. {line.problem}"
    )
    _set_command_outputs(activity, publisher, "refused", "unknown_command")
    return EXIT_BAD_INPUT


def _check_comment_command(
    activity: activities.CommentCommand,
    publisher: HandlerPublisher,
    pull: PullRequest,
    permission: Permission,
) -> None:
    """Refuses at once what the other workflow would refuse minutes later.

    Raises:
        BotError: the command would be refused; the message says why.
    """
    line = activity.command
    if isinstance(line, comment_command.ApplyCommand):
        request = ApplyRequester(
            by=activity.author,
            permission=permission,
            command=line,
            # Only the job that has a checkout can say which commit is checked out.
            checked_out=(pull.head_sha,),
        )
        marker = publisher.read_marker()
        against = [
            item
            for item in list_unmet_conditions_of_apply_gate(request, pull, marker)
            # If this job's input `project` differs from the review's, it does not find the review's
            # comment. The workflow that is started will know.
            if marker is not None or item.reason_code != "no_reviewed_plan"
        ]
        if against:
            raise _make_refusal_error(against)
    if isinstance(line, comment_command.AcceptCommand):
        _check_accept_command(line, activity.author, pull, permission)
    if isinstance(line, comment_command.RestateCommand):
        against = list_gate_conditions_to_load(
            activity.author, permission, pull, (pull.head_sha,), what="a restatement"
        )
        if against:
            raise _make_refusal_error(against)
    if isinstance(line, comment_command.EstimateCommand):
        against = list_gate_conditions_to_load(
            activity.author, permission, pull, (pull.head_sha,), what="an estimate"
        )
        if against:
            raise _make_refusal_error(against)
    if isinstance(line, comment_command.PlanCommand) and pull.fork:
        # The other workflow has secrets, and a fork's code must never be loaded beside them.
        raise RequestRefused(
            "The pull request comes from a fork, and its code is never loaded beside secrets, as "
            "this command would do.",
            hint="Every push is reviewed automatically. To plan it with prod's state, push the "
            "branch to this repository and open a pull request from there.",
            reason_code="fork",
        )
    if isinstance(line, comment_command.PlanCommand) and not pull.open:
        raise RequestRefused(
            f"Pull request #{pull.number} is closed.",
            hint="Reopen it; that plans it again.",
            reason_code="closed",
        )


def _check_accept_command(
    line: comment_command.AcceptCommand, author: str, pull: PullRequest, permission: Permission
) -> None:
    try:
        find_rule(line.rule)
    except UnknownRule as error:
        near = " or ".join(f"`{name}`" for name in error.near)
        hint = f"Did you mean {near}?" if near else "The comment names the rules of its findings."
        raise BadInput(str(error), hint=hint, reason_code="unknown_rule") from None
    against = list_gate_conditions_to_load(
        author, permission, pull, (pull.head_sha,), what="an acceptance"
    )
    if against:
        raise _make_refusal_error(against)


def _build_workflow_inputs(activity: activities.CommentCommand) -> dict[str, str]:
    """Makes the inputs of the workflow to start. GitHub refuses inputs that it does not declare."""
    line, number = activity.command, {"pr-number": str(activity.number)}
    if isinstance(line, comment_command.PlanCommand):
        return number
    wanted = line if isinstance(line, comment_command.ApplyCommand) else None
    return {
        **number,
        "plan-id": (wanted and wanted.plan_id) or "",
        "comment-id": str(activity.comment_id),
        "mode": "probe" if wanted and wanted.probe else line.verb,
        "override-reason": (wanted and wanted.override) or "",
    }


def _get_workflow_branch(activity: activities.CommentCommand) -> str:
    if activity.default_branch is None:
        raise RequestRefused(
            "The event does not name the default branch, so no workflow can be started on it.",
            hint=EVENT_FILE_HINT,
            reason_code="no_default_branch",
        )
    return activity.default_branch


def _make_permission_error(login: str, permission: Permission) -> RequestRefused:
    return RequestRefused(
        f"@{login} has {permission} access to this repository, and commands need write.",
        hint="Ask somebody with write access to give the command.",
        reason_code="permission",
    )


def _make_refusal_error(against: list[UnmetApplyCondition]) -> RequestRefused:
    return RequestRefused(
        " ".join(item.message for item in against),
        hint=" ".join(item.hint for item in against),
        reason_code=against[0].reason_code,
    )


def _refuse_command(
    activity: activities.CommentCommand,
    publisher: HandlerPublisher,
    github: GitHub,
    error: BotError,
) -> int:
    """Adds a thumbs-down and one short reply with reason and next step; returns the exit code."""
    failure = make_activity_failure_of_worker(error, "command", publisher.redactor)
    publisher.commands.annotate_error(f"{failure.message} {failure.hint or ''}".strip())
    _set_command_outputs(activity, publisher, "refused", error.reason_code)
    _add_reaction(activity, publisher, github, "-1")
    publisher.try_note(
        notices.render_refused_comment(
            failure.reason_code, failure.message, failure.hint, publisher.template
        )
    )
    return error.exit_code


def _add_reaction(
    activity: activities.CommentCommand,
    publisher: HandlerPublisher,
    github: GitHub,
    content: Reaction,
) -> None:
    """Adds a reaction, as a courtesy: if that fails, the command is carried out anyway."""
    try:
        github.add_reaction(activity.comment_id, content)
    except BotError as error:
        publisher.annotate_problem("The reaction could not be set", error)


def _set_command_outputs(
    activity: activities.CommentCommand, publisher: HandlerPublisher, result: str, reason_code: str
) -> None:
    """Sets the step's outputs. The comment shows the effect of a command when it is done."""
    publisher.set_outputs(
        {"reason-code": reason_code},
        {
            "activity": "command",
            "command": activity.command.verb,
            "result": result,
            "reason_code": reason_code,
            "pr_number": activity.number,
        },
    )
