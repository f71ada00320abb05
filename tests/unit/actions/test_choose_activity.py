"""Event and inputs -> activity: the whole matrix, as one table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ci_bot.bot.actions import comment_command
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
from ci_bot.bot.actions.choose_activity import REVIEWED_ACTIONS, choose_activity
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
from ci_bot.bot.actions.inputs import MODES, ActionInputs, Mode
from ci_bot.errors import BadInput, RequestRefused

HEAD, BASE, MERGE = "a" * 40, "b" * 40, "c" * 40
# https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#pull_request
PULL_ACTIONS = [
    "assigned",
    "unassigned",
    "labeled",
    "unlabeled",
    "opened",
    "edited",
    "closed",
    "reopened",
    "synchronize",
    "converted_to_draft",
    "locked",
    "unlocked",
    "enqueued",
    "dequeued",
    "milestoned",
    "demilestoned",
    "ready_for_review",
    "review_requested",
    "review_request_removed",
    "auto_merge_enabled",
    "auto_merge_disabled",
]


def pull(action: str, **changes: Any) -> PullRequestEvent:
    facts: dict[str, Any] = {
        "name": "pull_request",
        "action": action,
        "repository": "octo/flights",
        "number": 7,
        "head_sha": HEAD,
        "base_sha": BASE,
        "merge_sha": MERGE,
        "head_ref": "more-delays",
        "base_ref": "main",
        "head_repository": "octo/flights",
        "author": "ada",
        "draft": False,
        "merged": False,
        "sender": "ada",
    }
    return PullRequestEvent(**{**facts, **changes})


def dispatch(**inputs: str) -> DispatchEvent:
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return DispatchEvent(repository="octo/flights", ref="main", sender="grace", inputs=named)


def comment(body: str, **changes: Any) -> CommentEvent:
    facts: dict[str, Any] = {
        "action": "created",
        "repository": "octo/flights",
        "number": 7,
        "on_pull_request": True,
        "open": True,
        "comment_id": 99,
        "body": body,
        "author": "ada",
        "author_is_bot": False,
    }
    return CommentEvent(**{**facts, **changes})


def run(**changes: Any) -> WorkflowRunEvent:
    facts: dict[str, Any] = {
        "action": "completed",
        "repository": "octo/flights",
        "run_id": 5,
        "run_event": "pull_request",
        "conclusion": "success",
        "head_sha": HEAD,
        "head_branch": "more-delays",
        "head_repository": "stranger/flights",
    }
    return WorkflowRunEvent(**{**facts, **changes})


def group(action: str = "checks_requested", number: int | None = 7) -> MergeGroupEvent:
    return MergeGroupEvent(
        action=action,
        repository="octo/flights",
        head_sha=HEAD,
        base_sha=BASE,
        number=number,
        base_ref="main",
    )


SAME = Review(
    number=7,
    head_sha=HEAD,
    base_sha=BASE,
    merge_sha=MERGE,
    head_ref="more-delays",
    base_ref="main",
)
POSTED = PostForkReport(
    run_id=5,
    head_sha=HEAD,
    head_repository="stranger/flights",
    head_branch="more-delays",
    fork=True,
)
CLOSED = Cleanup(number=7, merged=False, closed=True, head_sha=HEAD)

MATRIX: list[tuple[str, Event, ActionInputs, Activity]] = [
    # A pull request of the same repository.
    ("opened", pull("opened"), ActionInputs(), SAME),
    ("pushed", pull("synchronize"), ActionInputs(), SAME),
    ("reopened", pull("reopened"), ActionInputs(), SAME),
    ("ready", pull("ready_for_review"), ActionInputs(), SAME),
    ("draft", pull("opened", draft=True), ActionInputs(), SAME),
    # Its merge commit is not taken from the event, which may still name that of the former base.
    (
        "another base branch",
        pull("edited", base_ref="release", retargeted=True),
        ActionInputs(),
        replace(SAME, merge_sha=None, base_ref="release", retargeted=True),
    ),
    ("mode review", pull("opened"), ActionInputs(mode="review"), SAME),
    ("closed", pull("closed"), ActionInputs(), CLOSED),
    ("closed, mode cleanup", pull("closed"), ActionInputs(mode="cleanup"), CLOSED),
    (
        "merged",
        pull("closed", merged=True),
        ActionInputs(),
        Cleanup(number=7, merged=True, closed=True, head_sha=HEAD),
    ),
    (
        "target closed",
        pull("closed", name="pull_request_target", merged=True),
        ActionInputs(),
        Cleanup(number=7, merged=True, closed=True, head_sha=HEAD),
    ),
    (
        "fork closed",
        pull("closed", head_repository=None),
        ActionInputs(),
        Cleanup(number=7, merged=False, closed=True, has_secrets=False, head_sha=HEAD),
    ),
    (
        "Dependabot's closed",
        pull("closed", author="dependabot[bot]"),
        ActionInputs(),
        Cleanup(number=7, merged=False, closed=True, has_secrets=False, head_sha=HEAD),
    ),
    # The default branch's workflow runs then, with its secrets, whoever opened the pull request.
    (
        "target, fork closed",
        pull("closed", name="pull_request_target", head_repository="stranger/flights"),
        ActionInputs(),
        CLOSED,
    ),
    (
        "target, fork that is gone closed",
        pull("closed", name="pull_request_target", head_repository=None),
        ActionInputs(),
        CLOSED,
    ),
    (
        "target, Dependabot's merged",
        pull("closed", name="pull_request_target", author="dependabot[bot]", merged=True),
        ActionInputs(),
        Cleanup(number=7, merged=True, closed=True, head_sha=HEAD),
    ),
    # workflow_dispatch.
    ("dispatch", dispatch(), ActionInputs(pr_number=7), Apply(number=7, requested_by="grace")),
    (
        "dispatch input",
        dispatch(pr_number="7"),
        ActionInputs(),
        Apply(number=7, requested_by="grace"),
    ),
    (
        "dispatch, inputs of the action first",
        dispatch(pr_number="8", plan_id="ffffffff", comment_id="1"),
        ActionInputs(pr_number=7, plan_id="deadbeef", comment_id=99),
        Apply(
            number=7,
            requested_by="grace",
            comment_id=99,
            command=comment_command.ApplyCommand("deadbeef"),
        ),
    ),
    (
        "dispatch, its own inputs",
        dispatch(pr_number=" 8 ", plan_id="ffffffff", comment_id="1"),
        ActionInputs(mode="apply"),
        Apply(
            number=8,
            requested_by="grace",
            comment_id=1,
            command=comment_command.ApplyCommand("ffffffff"),
        ),
    ),
    ("dispatch review", dispatch(), ActionInputs(mode="review", pr_number=7), Review(number=7)),
    (
        "dispatch cleanup",
        dispatch(comment_id="99"),
        ActionInputs(mode="cleanup", pr_number=7),
        Cleanup(number=7, merged=None, closed=None, comment_id=99, requested_by="grace"),
    ),
    (
        "dispatch accept",
        dispatch(comment_id="99"),
        ActionInputs(mode="accept", pr_number=7),
        Accept(number=7, comment_id=99),
    ),
    (
        "dispatch restate",
        dispatch(comment_id="99"),
        ActionInputs(mode="restate", pr_number=7),
        Restate(number=7, comment_id=99),
    ),
    (
        "dispatch estimate",
        dispatch(comment_id="99"),
        ActionInputs(mode="estimate", pr_number=7),
        Estimate(number=7, requested_by="grace", comment_id=99),
    ),
    (
        "dispatch probe",
        dispatch(comment_id="99", plan_id="9f3c21aa01bc"),
        ActionInputs(mode="probe", pr_number=7),
        Apply(
            number=7,
            requested_by="grace",
            comment_id=99,
            command=comment_command.ApplyCommand("9f3c21aa01bc", probe=True),
        ),
    ),
    ("dispatch sweep", dispatch(), ActionInputs(mode="sweep"), Sweep()),
    ("dispatch doctor", dispatch(), ActionInputs(mode="doctor"), Doctor(branch="main")),
    # Comments.
    (
        "apply command",
        comment("/sqlmesh apply 9f3c21aa01bc"),
        ActionInputs(),
        CommentCommand(
            number=7,
            comment_id=99,
            author="ada",
            command=comment_command.ApplyCommand("9f3c21aa01bc", None),
        ),
    ),
    (
        "unknown verb",
        comment("/sqlmesh destroy"),
        ActionInputs(),
        CommentCommand(
            number=7,
            comment_id=99,
            author="ada",
            command=comment_command.HelpCommand("This verb is not known."),
        ),
    ),
    (
        "cleanup on a closed one",
        comment("/sqlmesh cleanup", open=False),
        ActionInputs(),
        CommentCommand(
            number=7, comment_id=99, author="ada", command=comment_command.CleanupCommand()
        ),
    ),
    # The rest.
    ("schedule", ScheduleEvent(cron="17 3 * * *"), ActionInputs(), Sweep()),
    ("schedule, mode sweep", ScheduleEvent(cron=None), ActionInputs(mode="sweep"), Sweep()),
    ("schedule, mode drift", ScheduleEvent(cron=None), ActionInputs(mode="drift"), Drift()),
    ("dispatch drift", dispatch(), ActionInputs(mode="drift"), Drift()),
    ("fork's run ended", run(), ActionInputs(), POSTED),
    ("fork's run ended with No-Go", run(conclusion="failure"), ActionInputs(), POSTED),
    (
        "fork that is gone",
        run(head_repository=None),
        ActionInputs(),
        PostForkReport(
            run_id=5, head_sha=HEAD, head_repository=None, head_branch="more-delays", fork=True
        ),
    ),
    (
        "Dependabot's run ended",
        run(head_repository="octo/flights", head_branch="dependabot/pip/sqlmesh-0.236.5"),
        ActionInputs(),
        PostForkReport(
            run_id=5,
            head_sha=HEAD,
            head_repository="octo/flights",
            head_branch="dependabot/pip/sqlmesh-0.236.5",
            fork=False,
        ),
    ),
    (
        "merge queue",
        group(),
        ActionInputs(),
        Review(
            number=7,
            head_sha=HEAD,
            base_sha=BASE,
            merge_sha=HEAD,
            base_ref="main",
            comment=False,
        ),
    ),
    (
        "merge queue of a number unknown",
        group(number=None),
        ActionInputs(mode="review"),
        Review(
            number=None,
            head_sha=HEAD,
            base_sha=BASE,
            merge_sha=HEAD,
            base_ref="main",
            comment=False,
        ),
    ),
]


@pytest.mark.parametrize(
    ("event", "asked", "expected"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX]
)
def test_choose__matrix(event: Event, asked: ActionInputs, expected: Activity) -> None:
    assert choose_activity(event, asked) == expected


SKIPS: list[tuple[str, Event, ActionInputs, str]] = [
    ("another title", pull("edited"), ActionInputs(), "title or the text"),
    (
        "another title, mode review",
        pull("edited"),
        ActionInputs(mode="review"),
        "base branch was not",
    ),
    (
        "another base, mode cleanup",
        pull("edited", retargeted=True),
        ActionInputs(mode="cleanup"),
        "serves closed ones",
    ),
    ("mode cleanup, open", pull("opened"), ActionInputs(mode="cleanup"), "serves closed ones"),
    ("mode review, closed", pull("closed"), ActionInputs(mode="review"), "does not clean up"),
    ("mode apply, closed", pull("closed"), ActionInputs(mode="apply"), "does not clean up"),
    ("issue", comment("/sqlmesh plan", on_pull_request=False), ActionInputs(), "on an issue"),
    ("edited", comment("/sqlmesh plan", action="edited"), ActionInputs(), "Only new comments"),
    ("deleted", comment("/sqlmesh plan", action="deleted"), ActionInputs(), "Only new comments"),
    ("bot", comment("/sqlmesh plan", author_is_bot=True), ActionInputs(), "by a bot"),
    ("no command", comment("Looks good"), ActionInputs(), "no command"),
    ("no command, any mode", comment("Looks good"), ActionInputs(mode="apply"), "no command"),
    ("plan, closed", comment("/sqlmesh plan", open=False), ActionInputs(), "is closed"),
    (
        "apply, closed",
        comment("/sqlmesh apply 9f3c21aa01bc", open=False),
        ActionInputs(),
        "is closed",
    ),
    ("run requested", run(action="requested"), ActionInputs(), "not ended yet"),
    ("run of a push", run(run_event="push"), ActionInputs(), "not started by a pull request"),
    ("run cancelled", run(conclusion="cancelled"), ActionInputs(), "did not finish"),
    ("run skipped", run(conclusion="skipped"), ActionInputs(), "did not finish"),
    ("run here", run(head_repository="octo/flights"), ActionInputs(), "its own comment"),
    ("merge group destroyed", group("destroyed"), ActionInputs(), "asks for no check"),
    ("push", OtherEvent(name="push", action=None), ActionInputs(), "`push`"),
]


@pytest.mark.parametrize(
    ("event", "asked", "reason"), [row[1:] for row in SKIPS], ids=[row[0] for row in SKIPS]
)
def test_choose__skips_with_a_reason(event: Event, asked: ActionInputs, reason: str) -> None:
    activity = choose_activity(event, asked)
    assert isinstance(activity, NothingToDo)
    assert reason in activity.reason


@pytest.mark.parametrize("action", PULL_ACTIONS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
def test_choose__every_action_of_a_pull_request(name: str, mode: Mode, action: str) -> None:
    """Closed never becomes anything but a cleanup; the target trigger never a review."""
    event = pull(action, name=name)
    try:
        activity = choose_activity(event, ActionInputs(mode=mode))
    except BadInput as error:
        assert action != "closed"
        assert error.reason_code == (
            "mode_mismatch" if name == "pull_request" else "unsafe_trigger"
        )
        return
    if action == "closed":
        expected: type = Cleanup if mode in ("auto", "cleanup") else NothingToDo
    elif action in REVIEWED_ACTIONS:
        expected = Review if mode in ("auto", "review") else NothingToDo
    else:
        expected = NothingToDo
    assert type(activity) is expected
    assert name == "pull_request" or not isinstance(activity, Review)


@pytest.mark.parametrize("action", sorted(REVIEWED_ACTIONS))
@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"head_repository": "stranger/flights"}, "fork"),
        ({"author": "dependabot[bot]"}, "Dependabot"),
    ],
)
def test_choose__untrusted_review_has_no_secrets_and_no_comment(
    action: str, facts: dict[str, Any], word: str
) -> None:
    activity = choose_activity(pull(action, **facts), ActionInputs())
    assert isinstance(activity, Review)
    assert activity.untrusted is not None
    assert word in activity.untrusted
    assert not activity.comment


@pytest.mark.parametrize("action", ["opened", "synchronize", "labeled", "edited"])
@pytest.mark.parametrize("retargeted", [False, True])
def test_choose__target_trigger_is_refused_with_the_safe_one(action: str, retargeted: bool) -> None:
    with pytest.raises(BadInput, match="pull_request_target") as caught:
        choose_activity(
            pull(action, name="pull_request_target", retargeted=retargeted), ActionInputs()
        )
    assert caught.value.hint is not None
    assert "`on: pull_request`" in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("event", "mode"),
    [
        (pull("opened"), "apply"),
        (pull("opened"), "sweep"),
        (comment("/sqlmesh plan"), "apply"),
        (ScheduleEvent(cron=None), "cleanup"),
        (run(), "review"),
        (group(), "apply"),
    ],
)
def test_choose__mode_that_cannot_fit_is_bad_input(event: Event, mode: Mode) -> None:
    with pytest.raises(BadInput, match=f"`mode: {mode}` cannot be done on") as caught:
        choose_activity(event, ActionInputs(mode=mode))
    assert caught.value.hint is not None
    assert "workflow_dispatch" in caught.value.hint


def test_choose__a_review_has_a_workflow_of_its_own() -> None:
    """Whoever may start the workflow that applies cannot make a review run with its credentials."""
    with pytest.raises(RequestRefused, match="credentials") as caught:
        choose_activity(dispatch(mode="review", pr_number="7"), ActionInputs(mode="review"))
    assert caught.value.reason_code == "review_beside_writer"
    assert "review.yml" in (caught.value.hint or "")
    assert choose_activity(dispatch(pr_number="7"), ActionInputs(mode="review")) == Review(number=7)


@pytest.mark.parametrize(
    ("activity", "by_hand"),
    [
        (SAME, False),
        (Review(number=None, head_sha=HEAD, base_sha=BASE, merge_sha=HEAD), False),
        (Review(number=7), True),
        (CLOSED, False),
        (Cleanup(number=7, merged=None, closed=None), True),
    ],
)
def test_dispatched__is_what_no_event_vouches_for(
    activity: Review | Cleanup, by_hand: bool
) -> None:
    assert activity.was_dispatched is by_hand


@pytest.mark.parametrize("mode", ["auto", "review", "apply", "cleanup"])
def test_choose__dispatch_without_a_number_is_bad_input(mode: Mode) -> None:
    with pytest.raises(BadInput, match="No pull request is named") as caught:
        choose_activity(dispatch(), ActionInputs(mode=mode))
    assert caught.value.hint is not None
    assert "pr-number" in caught.value.hint


@pytest.mark.parametrize("text", ["x", "-1", "0", "1.5", "١", "9" * 30, "#7"])
def test_choose__dispatch_number_that_is_none_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="`pr-number` is not a positive whole number"):
        choose_activity(dispatch(pr_number=text), ActionInputs())


def test_choose__names_of_unknown_events_are_fit_for_a_notice() -> None:
    activity = choose_activity(OtherEvent(name="::error::\n`x`", action=None), ActionInputs())
    assert activity == NothingToDo("The event `errorx` asks for nothing here.")


def test_actor__is_who_asks_for_an_apply() -> None:
    """A run that is started again has another actor than its event has a sender."""
    chosen = choose_activity(
        dispatch(), ActionInputs(pr_number=7, override_reason="known"), actor="ada"
    )
    assert chosen == Apply(
        number=7, requested_by="ada", command=comment_command.ApplyCommand(None, "known")
    )


@pytest.mark.parametrize("mode", ["accept", "restate"])
def test_choose__what_an_owner_decides_is_asked_for_by_a_comment_only(mode: Mode) -> None:
    with pytest.raises(BadInput) as caught:
        choose_activity(dispatch(), ActionInputs(mode=mode, pr_number=7))
    assert caught.value.reason_code == "bad_comment"
    assert f"/sqlmesh {mode}" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("base", "default", "expected"),
    [("main", "main", True), ("release", "main", False), ("main", None, False)],
)
def test_choose__knows_whether_it_is_onto_the_default_branch(
    base: str, default: str | None, expected: bool
) -> None:
    event = replace(pull("opened"), base_ref=base, default_branch=default)
    activity = choose_activity(event, ActionInputs())
    assert isinstance(activity, Review)
    assert activity.onto_default is expected
