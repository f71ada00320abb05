"""Comment commands against a GitHub in memory: what is asked, in which order, and what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.actions import activities, comment_command
from ci_bot.bot.github.port import Permission
from ci_bot.bot.handlers import comment_commands
from ci_bot.bot.report.markdown import marker as markers
from ci_bot.bot.report.markdown import notices
from ci_bot.errors import GitHubUnavailable, RequestRefused
from ci_bot.protocol.plan import Window
from tests.factories import HEAD, PLAN, make_context, make_marker
from tests.publishing import Memory, context_of, publisher_of
from tests.unit.report.dom import LIVE, parse

RESTATE = comment_command.RestateCommand("mart.a", "2024-01-01", None, "late rows")
ACCEPT = comment_command.AcceptCommand("join-changed", "mart.a", "one row per key")
ESTIMATE = comment_command.EstimateCommand()
WINDOW = Window(start=None, end=None, execution_time="2026-08-22T10:00:00Z")


def planned(**facts: Any) -> str:
    marker = make_marker(**{"window": WINDOW, **facts})
    return f"{markers.encode_comment_marker(marker)}\nThe review."


def give(github: Memory, line: comment_command.CommandLine, *, branch: str | None = "trunk") -> int:
    asked = activities.CommentCommand(
        number=142, comment_id=99, author="ada", command=line, default_branch=branch
    )
    return comment_commands.CommandHandler().run(asked, context_of(publisher_of(github), github))


def inputs(mode: str, plan_id: str = "", reason: str = "") -> dict[str, str]:
    return {
        "pr-number": "142",
        "plan-id": plan_id,
        "comment-id": "99",
        "mode": mode,
        "override-reason": reason,
    }


def test_command__apply_is_checked_and_started_in_seven_requests() -> None:
    github = Memory()
    github.say(planned())
    assert give(github, comment_command.ApplyCommand(PLAN[:12])) == 0
    assert github.dispatched == [("apply.yml", "trunk", inputs("apply", PLAN[:12]))]
    assert github.calls == [
        "permission",
        "eyes",
        "get_pull",
        "list_comments",
        "my_login",
        "dispatch",
        "rocket",
    ]
    assert len(github.comments) == 1, "a started command needs no words"


def test_command__a_probe_is_checked_as_the_apply_that_it_is_a_part_of() -> None:
    github = Memory()
    github.say(planned())
    assert give(github, comment_command.ApplyCommand(PLAN[:12], probe=True)) == 0
    assert github.dispatched == [("apply.yml", "trunk", inputs("probe", PLAN[:12]))]
    other = comment_command.ApplyCommand("f" * 12, probe=True)
    assert give(github, other) == 3
    assert "`unknown_plan`" in github.reply


@pytest.mark.parametrize(
    ("line", "workflow", "sent"),
    [
        # A plan changes nothing, so it runs where the credentials read only.
        (comment_command.PlanCommand(), "review.yml", {"pr-number": "142"}),
        (comment_command.CleanupCommand(), "apply.yml", inputs("cleanup")),
        # What is accepted, the other run reads in the comment itself.
        (ACCEPT, "apply.yml", inputs("accept")),
        (RESTATE, "apply.yml", inputs("restate")),
        (ESTIMATE, "apply.yml", inputs("estimate")),
    ],
)
def test_command__plan_cleanup_accept_and_estimate_are_started_in_five(
    line: comment_command.CommandLine, workflow: str, sent: dict[str, str]
) -> None:
    github = Memory()
    assert give(github, line) == 0
    assert github.dispatched == [(workflow, "trunk", sent)]
    assert github.calls == ["permission", "eyes", "get_pull", "dispatch", "rocket"]


@pytest.mark.parametrize("role", ["triage", "read", "none"])
@pytest.mark.parametrize(
    "line",
    [
        comment_command.ApplyCommand(PLAN[:12]),
        comment_command.PlanCommand(),
        comment_command.CleanupCommand(),
        ACCEPT,
        RESTATE,
        ESTIMATE,
        comment_command.StatusCommand(),
        comment_command.HelpCommand(),
    ],
)
def test_command__without_write_access_gets_a_reason_and_starts_nothing(
    role: Permission, line: comment_command.CommandLine
) -> None:
    github = Memory(role=role)
    assert give(github, line) == 3
    assert github.dispatched == []
    assert github.calls == ["permission", "-1", "create_comment"]
    assert "`permission`" in github.reply
    assert f"has {role} access" in github.reply
    assert "**Next:**" in github.reply


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fork": True}, "fork"),
        ({"draft": True}, "draft"),
        ({"open": False}, "closed"),
        ({"mergeable": False}, "conflict"),
        ({"head_sha": "d" * 40}, "head_moved"),
    ],
)
def test_command__apply_that_the_gate_refuses_is_refused_at_once(
    changes: dict[str, Any], reason: str
) -> None:
    github = Memory()
    github.pull = replace(github.pull, **changes)
    github.say(planned())
    assert give(github, comment_command.ApplyCommand(PLAN[:12])) == 3
    assert github.dispatched == []
    assert f"`{reason}`" in github.reply
    assert github.calls[-2:] == ["-1", "create_comment"]


def test_command__apply_of_another_plan_names_the_right_command() -> None:
    github = Memory()
    github.say(planned())
    assert give(github, comment_command.ApplyCommand("0123456789ab")) == 3
    assert "`unknown_plan`" in github.reply
    assert f"`/sqlmesh apply {PLAN[:12]}`" in github.reply


def test_command__apply_of_a_no_go_needs_a_maintainers_reason() -> None:
    github = Memory()
    github.say(planned(decision="no_go"))
    assert give(github, comment_command.ApplyCommand(PLAN[:12])) == 3
    assert "`no_go`" in github.reply
    assert give(github, comment_command.ApplyCommand(PLAN[:12], "we know")) == 3
    assert "`override_permission`" in github.reply
    github.role = "maintain"
    assert give(github, comment_command.ApplyCommand(PLAN[:12], "we know")) == 0
    assert github.dispatched == [("apply.yml", "trunk", inputs("apply", PLAN[:12], "we know"))]


def test_command__apply_without_a_comment_of_ours_is_left_to_the_workflow() -> None:
    """The job for comments may not be told the same `project`, and then finds no comment."""
    github = Memory()
    github.say(planned(key="another project"))
    assert give(github, comment_command.ApplyCommand(PLAN[:12])) == 0
    assert len(github.dispatched) == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fork": True}, "fork"),
        ({"draft": True}, "draft"),
        ({"open": False}, "closed"),
        ({"mergeable": False}, "conflict"),
    ],
)
@pytest.mark.parametrize("line", [ACCEPT, RESTATE, ESTIMATE])
def test_command__accept_and_estimate_are_refused_at_once_where_nothing_can_be_planned(
    changes: dict[str, Any], reason: str, line: comment_command.CommandLine
) -> None:
    github = Memory()
    github.pull = replace(github.pull, **changes)
    assert give(github, line) == 3
    assert github.dispatched == []
    assert f"`{reason}`" in github.reply


def test_command__accept_of_a_rule_that_is_none_names_its_neighbour() -> None:
    github = Memory()
    assert give(github, replace(ACCEPT, rule="join-changd")) == 2
    assert github.dispatched == []
    assert "There is no rule `join-changd`. (`unknown_rule`)" in github.reply
    assert "`join-changed`" in github.reply


def test_command__plan_of_a_fork_is_refused() -> None:
    """A run that is started by hand has secrets, and would load the fork's code beside them."""
    github = Memory()
    github.pull = replace(github.pull, fork=True)
    assert give(github, comment_command.PlanCommand()) == 3
    assert github.dispatched == []
    assert "`fork`" in github.reply


def test_command__on_a_closed_pull_request_cleanup_is_served_and_plan_is_not() -> None:
    github = Memory()
    github.pull = replace(github.pull, open=False)
    assert give(github, comment_command.PlanCommand()) == 3
    assert give(github, comment_command.CleanupCommand()) == 0
    assert [mode["mode"] for _, _, mode in github.dispatched] == ["cleanup"]


def test_command__status_says_what_the_marker_says() -> None:
    github = Memory()
    github.say(planned(phase="applied"))
    assert give(github, comment_command.StatusCommand()) == 0
    for fact in (f"`{PLAN[:12]}`", "applied", "Review", "`pr_142`", f"`{HEAD[:7]}`"):
        assert fact in github.reply
    assert github.calls == [
        "permission",
        "eyes",
        "list_comments",
        "my_login",
        "create_comment",
        "rocket",
    ]
    assert github.dispatched == []


def test_command__status_with_a_plan_that_can_be_applied_gives_the_command() -> None:
    github = Memory()
    github.say(planned())
    give(github, comment_command.StatusCommand())
    assert f"`/sqlmesh apply {PLAN[:12]}`" in github.reply


def test_command__status_does_not_believe_a_pasted_marker() -> None:
    github = Memory()
    github.say(planned(), author="mallory")
    assert give(github, comment_command.StatusCommand()) == 0
    assert "no plan" in github.reply
    assert PLAN[:12] not in github.reply


def test_command__help_lists_every_command_and_reacts_to_a_mistake_only() -> None:
    github = Memory()
    assert give(github, comment_command.HelpCommand()) == 0
    assert all(line in github.reply for line in comment_command.USAGE)
    assert github.calls == ["permission", "eyes", "create_comment"]
    assert give(github, comment_command.HelpCommand("This verb is not known.")) == 2
    assert "This verb is not known." in github.reply
    assert github.calls[-1] == "-1"


def test_command__a_missing_permission_of_the_token_is_named_in_the_reply() -> None:
    missing = RequestRefused(
        "The token may not start the workflow: it lacks the permission `actions: write`.",
        hint="Add `actions: write` under `permissions:` of the job.",
        reason_code="missing_permission",
    )
    github = Memory(failing={"dispatch": missing})
    assert give(github, comment_command.PlanCommand()) == 3
    assert "`actions: write`" in github.reply
    assert "rocket" not in github.calls


def test_command__goes_on_where_a_reaction_cannot_be_set() -> None:
    github = Memory(failing={"eyes": GitHubUnavailable("no"), "rocket": GitHubUnavailable("no")})
    assert give(github, comment_command.PlanCommand()) == 0
    assert len(github.dispatched) == 1


def test_command__keeps_its_exit_code_where_the_reply_cannot_be_written() -> None:
    github = Memory(role="read", failing={"create_comment": GitHubUnavailable("down")})
    assert give(github, comment_command.PlanCommand()) == 3


def test_command__without_a_default_branch_starts_nothing() -> None:
    github = Memory()
    assert give(github, comment_command.PlanCommand(), branch=None) == 3
    assert github.dispatched == []
    assert "`no_default_branch`" in github.reply


_ATOMS = ("@team", "#12", "`", "```", "<img src=x>", "</details>", "|", "\n", "http://a.b", "](x)")
_EVIL = st.lists(st.sampled_from(_ATOMS) | st.text(max_size=12), max_size=6).map(" ".join)


@given(_EVIL, _EVIL)
def test_reply__holds_no_markup_of_anybody_else(message: str, hint: str) -> None:
    context = make_context(marker=None)
    plain = parse(notices.render_refused_comment("permission", "words", "words", context))
    shown = parse(
        notices.render_refused_comment("permission", f"{message} words", f"{hint} words", context)
    )
    assert set(shown.tags - plain.tags) <= {"code"}
    assert shown.links == plain.links
    assert not [text for text in shown.plain if LIVE.search(text)]


@given(_EVIL)
def test_reply__of_a_marker_holds_no_markup_of_anybody_else(name: str) -> None:
    """Our own marker names the environment; a person may have edited the comment."""
    context = make_context(marker=None)
    plain = parse(notices.render_status_comment(make_marker(), context, comment_url=None))
    marker = make_marker(env=f"pr {name}")
    shown = parse(notices.render_status_comment(marker, context, comment_url=None))
    assert set(shown.tags - plain.tags) <= {"code"}
    assert shown.tags["td"] == plain.tags["td"]
    assert not [text for text in shown.plain if LIVE.search(text)]
