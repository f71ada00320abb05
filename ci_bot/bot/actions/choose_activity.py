"""Chooses the activity that an event asks for; only here code branches on events. Pure and fast.

The rules, in this order:

- `pull_request` opened, synchronize, reopened, ready_for_review, and edited if that changed its
  base branch: **review**. For a fork or Dependabot GitHub gives the run no secrets and a
  read-only token, so the review works from the base branch and writes no comment; it leaves its
  report, and a `workflow_run` posts it.
- `pull_request` or `pull_request_target` closed, merged or not: **cleanup**, and never another
  activity, whatever `mode` says.
- `pull_request_target` with any other action: refused. It would load the pull request's code beside
  the base repository's secrets; `pull_request` is the safe trigger.
- `workflow_dispatch`: **apply** of a pull request by its number; `mode` may ask for review, probe,
  estimate, accept, restate, cleanup, sweep, drift or doctor instead. The last three need no number,
  and only accept and restate need a comment. A **review** has a workflow of its own, whose file
  contains `mode`: a person who starts a workflow that applies must not turn it into a review,
  because that would run with the credentials of an apply.
- `issue_comment` created on a pull request, by a person, with a command as its first line:
  **command**. If it was edited or deleted, is a bot's, or has no command, it is skipped without a
  request to GitHub. On a closed pull request only `cleanup` is allowed, to finish what is left.
- `schedule`: **sweep**, or **drift** if `mode` says so.
- `workflow_run` completed, of a review of a fork or of Dependabot: **post its report**.
- `merge_group`: **review** of the queue's merge commit, without a comment.
- Any other event is skipped with a reason, and that is a success.

`mode` can only narrow. If it names another activity than the event's own, the run is skipped with
that reason; if it can never fit the event, it is a configuration error.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import assert_never

from ci_bot.bot.actions.activities import (
    Accept,
    Activity,
    Apply,
    Cleanup,
    CommentCommand,
    Doctor,
    Drift,
    Estimate,
    NothingToDo,
    PostForkReport,
    Restate,
    Review,
    Sweep,
)
from ci_bot.bot.actions.comment_command import ApplyCommand, CleanupCommand, parse_comment_command
from ci_bot.bot.actions.event import (
    CommentEvent,
    DispatchEvent,
    Event,
    MergeGroupEvent,
    OtherEvent,
    PullRequestEvent,
    ScheduleEvent,
    WorkflowRunEvent,
)
from ci_bot.bot.actions.inputs import ActionInputs, Mode, describe_wrong_input_value, parse_plan_id
from ci_bot.errors import BadInput, RequestRefused

REVIEWED_ACTIONS = frozenset({"opened", "synchronize", "reopened", "ready_for_review"})
# A workflow_run names no author. Dependabot's branches are recognised here by their prefix; the
# author is checked when the report is posted.
_DEPENDABOT_BRANCH = "dependabot/"


def choose_activity(  # noqa: PLR0911 - one return per event
    event: Event, inputs: ActionInputs, *, actor: str | None = None
) -> Activity:
    """Returns the activity that `event` asks for, by the rules above.

    Args:
        inputs: `pr_number`, `plan_id` and `comment_id` are for `workflow_dispatch`; if one is not
            given, the dispatch's own input of that name counts.
        actor: The login of the triggering actor; if it is None, the event's sender counts.

    Raises:
        BadInput: the trigger is not safe, the mode cannot fit it, or the number is missing.
        RequestRefused: a review is requested in a workflow that has the credentials of an apply.
    """
    match event:
        case PullRequestEvent():
            return _choose_activity_for_pull_request(event, inputs.mode)
        case DispatchEvent():
            return _choose_activity_for_dispatch(event, inputs, actor or event.sender)
        case CommentEvent():
            return _choose_activity_for_comment(event, inputs.mode)
        case ScheduleEvent():
            _check_mode_input_fits_event(inputs.mode, {"auto", "sweep", "drift"}, "schedule")
            return Drift() if inputs.mode == "drift" else Sweep()
        case WorkflowRunEvent():
            return _choose_activity_for_workflow_run(event, inputs.mode)
        case MergeGroupEvent():
            return _choose_activity_for_merge_group(event, inputs.mode)
        case OtherEvent():
            return NothingToDo(
                f"The event `{_clean_github_name(event.name)}` asks for nothing here."
            )
        case _:  # pragma: no cover - mypy proves that this cannot be reached
            assert_never(event)


def _choose_activity_for_pull_request(event: PullRequestEvent, mode: Mode) -> Activity:
    if event.action == "closed":
        if mode not in ("auto", "cleanup"):
            return NothingToDo(
                f"The pull request was closed, and `mode: {mode}` does not clean up."
            )
        return Cleanup(
            number=event.number,
            merged=event.merged,
            closed=True,
            has_secrets=event.has_secrets,
            head_sha=event.head_sha,
        )
    if event.name == "pull_request_target":
        raise BadInput(
            "This workflow runs on `pull_request_target`, which would load the pull request's code "
            "beside the secrets of the base repository.",
            hint=(
                "Use `on: pull_request` for reviews; `pull_request_target` serves "
                "`types: [closed]` only."
            ),
            reason_code="unsafe_trigger",
        )
    _check_mode_input_fits_event(mode, {"auto", "review", "cleanup"}, "pull_request")
    if event.action == "edited" and not event.retargeted:
        return NothingToDo(
            "The title or the text of the pull request was edited, and its base branch was not, so "
            "the plan is the same."
        )
    if event.action not in REVIEWED_ACTIONS and not event.retargeted:
        return NothingToDo(
            f"`pull_request` {_clean_github_name(event.action)} changes nothing that a plan "
            "depends on."
        )
    if mode == "cleanup":
        return NothingToDo("The pull request is open, and `mode: cleanup` serves closed ones.")
    return Review(
        number=event.number,
        head_sha=event.head_sha,
        base_sha=event.base_sha,
        # GitHub starts such a run on the merge commit that it has, and that can be the one with the
        # former base branch: https://github.com/actions/checkout/issues/919
        merge_sha=None if event.retargeted else event.merge_sha,
        head_ref=event.head_ref,
        base_ref=event.base_ref,
        untrusted=_explain_untrusted_event(fork=event.is_fork, dependabot=event.is_dependabot),
        comment=event.has_secrets,
        onto_default=event.base_ref == event.default_branch,
        retargeted=event.retargeted,
    )


def _explain_untrusted_event(*, fork: bool, dependabot: bool) -> str | None:
    if fork:
        return "The pull request comes from a fork, so this run has no secrets and may not comment."
    if dependabot:
        return "Dependabot opened the pull request, so this run has no secrets and may not comment."
    return None


def _choose_activity_for_dispatch(
    event: DispatchEvent, inputs: ActionInputs, actor: str
) -> Activity:
    branch = (event.ref or "").removeprefix("refs/heads/") or None
    of_no_pull_request: dict[str, Activity] = {
        "sweep": Sweep(),
        "drift": Drift(),
        "doctor": Doctor(branch=branch),
    }
    if inputs.mode in of_no_pull_request:
        return of_no_pull_request[inputs.mode]
    number = inputs.pr_number or _parse_positive_number_input(event.inputs, "pr-number")
    if number is None:
        raise BadInput(
            "No pull request is named.",
            hint="Give the input `pr-number`; `sweep`, `drift` and `doctor` need none.",
            reason_code="missing_pr_number",
        )
    comment_id = inputs.comment_id or _parse_positive_number_input(event.inputs, "comment-id")
    if inputs.mode == "review":
        if event.inputs.get("mode", "").strip() == "review":
            raise RequestRefused(
                "A review was asked for by the input `mode` of a workflow that does other things, "
                "too, and it would run with the credentials of those.",
                hint="Start the review's own workflow, review.yml, or comment `/sqlmesh plan`. "
                "That file contains `mode: review`.",
                reason_code="review_beside_writer",
            )
        return Review(number=number)
    if inputs.mode in _BY_OWNERS:
        return _choose_activity_for_owner(inputs.mode, number, comment_id)
    if inputs.mode == "estimate":
        return Estimate(number=number, requested_by=actor, comment_id=comment_id)
    if inputs.mode == "cleanup":
        return Cleanup(
            number=number, merged=None, closed=None, comment_id=comment_id, requested_by=actor
        )
    command = ApplyCommand(
        inputs.plan_id or _read_plan_id_input(event.inputs),
        inputs.override_reason,
        probe=inputs.mode == "probe",
    )
    return Apply(number=number, requested_by=actor, command=command, comment_id=comment_id)


_BY_OWNERS: Mapping[str, tuple[type[Accept | Restate], str]] = {
    "accept": (
        Accept,
        'Write `/sqlmesh accept <rule> <model> "reason"` on the pull request.',
    ),
    "restate": (
        Restate,
        'An owner writes `/sqlmesh restate <model> "reason"` on the pull request.',
    ),
}


def _choose_activity_for_owner(mode: Mode, number: int, comment_id: int | None) -> Activity:
    """Returns the activity that an owner's comment asks for; only the comment says who and what."""
    kind, hint = _BY_OWNERS[mode]
    if comment_id is None:
        raise BadInput(
            f"No comment is named, and only a comment of an owner can ask to {mode}.",
            hint=hint,
            reason_code="bad_comment",
        )
    return kind(number=number, comment_id=comment_id)


def _choose_activity_for_comment(event: CommentEvent, mode: Mode) -> Activity:
    if not event.on_pull_request:
        return NothingToDo("The comment is on an issue, not on a pull request.")
    if event.action != "created":
        return NothingToDo("Only new comments are read; an edited or deleted one is no command.")
    if event.author_is_bot:
        return NothingToDo("The comment was written by a bot.")
    command = parse_comment_command(event.body)
    if command is None:
        return NothingToDo("The comment is no command.")
    if not event.open and not isinstance(command, CleanupCommand):
        return NothingToDo("The pull request is closed; only `/sqlmesh cleanup` is served there.")
    _check_mode_input_fits_event(mode, {"auto"}, "issue_comment")
    return CommentCommand(
        number=event.number,
        comment_id=event.comment_id,
        author=event.author,
        command=command,
        default_branch=event.default_branch,
    )


def _choose_activity_for_workflow_run(event: WorkflowRunEvent, mode: Mode) -> Activity:
    _check_mode_input_fits_event(mode, {"auto"}, "workflow_run")
    if event.action != "completed":
        return NothingToDo("The other workflow has not ended yet.")
    if event.run_event != "pull_request":
        return NothingToDo("The other workflow was not started by a pull request.")
    if event.conclusion in ("cancelled", "skipped", "action_required", "stale"):
        return NothingToDo("The other workflow did not finish, so there is no report to post.")
    if not event.is_fork and not (event.head_branch or "").startswith(_DEPENDABOT_BRANCH):
        return NothingToDo("The review ran in this repository and has written its own comment.")
    return PostForkReport(
        run_id=event.run_id,
        head_sha=event.head_sha,
        head_repository=event.head_repository,
        head_branch=event.head_branch,
        fork=event.is_fork,
    )


def _choose_activity_for_merge_group(event: MergeGroupEvent, mode: Mode) -> Activity:
    _check_mode_input_fits_event(mode, {"auto", "review"}, "merge_group")
    if event.action != "checks_requested":
        return NothingToDo("The merge queue asks for no check.")
    return Review(
        number=event.number,
        head_sha=event.head_sha,
        base_sha=event.base_sha,
        merge_sha=event.head_sha,
        base_ref=event.base_ref,
        comment=False,
        onto_default=event.base_ref is not None and event.base_ref == event.default_branch,
    )


def _check_mode_input_fits_event(mode: Mode, allowed: set[Mode], trigger: str) -> None:
    if mode not in allowed:
        raise BadInput(
            f"`mode: {mode}` cannot be done on `{trigger}`.",
            hint=(
                f"On `{trigger}` use `mode: {'` or `'.join(sorted(allowed))}`; "
                "review, apply, probe, estimate, accept, restate, cleanup, sweep and doctor all "
                "run on `workflow_dispatch`."
            ),
            reason_code="mode_mismatch",
        )


def _read_plan_id_input(inputs: Mapping[str, str]) -> str | None:
    """Reads the dispatch's input `plan-id`; None if it is not given."""
    text = inputs.get("plan-id", "")
    if not text.strip():
        return None
    try:
        return str(parse_plan_id(text))
    except ValueError as error:
        raise BadInput(
            f"{describe_wrong_input_value('The input `plan-id`', text, error)}.",
            hint="The comment shows the id of the reviewed plan.",
        ) from None


def _parse_positive_number_input(inputs: Mapping[str, str], name: str) -> int | None:
    """Reads a dispatch input as a positive whole number; None if it is not given."""
    text = inputs.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):  # noqa: PLR2004 - 64 bits
        from ci_bot.redaction import quote_value

        raise BadInput(
            f"The input `{name}` is not a positive whole number (got {quote_value(text)}).",
            hint=f"Give the number alone, for example `{name}: 17`.",
        )
    return int(text)


def _clean_github_name(text: str) -> str:
    """Returns a name that GitHub sent, cleaned for a notice."""
    return "".join(letter for letter in text if letter.isalnum() or letter in "_-")[:50]
