"""Comment commands: the grammar, and that any text at all is parsed without surprises."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.actions.comment_command import (
    LONGEST_LINE,
    LONGEST_REASON,
    PREFIX,
    USAGE,
    AcceptCommand,
    ApplyCommand,
    CleanupCommand,
    CommandLine,
    EstimateCommand,
    HelpCommand,
    PlanCommand,
    RestateCommand,
    StatusCommand,
    parse_comment_command,
)

PLAN = "9f3c21aa01bc"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/sqlmesh plan", PlanCommand()),
        ("/sqlmesh plan\r\nplease, the base has moved", PlanCommand()),
        ("/sqlmesh  plan \t ", PlanCommand()),
        ("/sqlmesh\tplan", PlanCommand()),
        # As phones begin a sentence, and as GitHub's own `startsWith` takes it.
        ("/SQLMesh Plan", PlanCommand()),
        ("/Sqlmesh STATUS", StatusCommand()),
        (f"/SQLMESH Apply {PLAN}", ApplyCommand(PLAN)),
        (
            '/SQLMesh Accept join-changed mart.A "why"',
            AcceptCommand("join-changed", "mart.A", "why"),
        ),
        (
            '/sqlmesh restate `mart.a` 2024-01-01 2024-01-07 "late rows"',
            RestateCommand("mart.a", "2024-01-01", "2024-01-07", "late rows"),
        ),
        (
            '/sqlmesh restate mart.a "2 weeks ago" "late rows"',
            RestateCommand("mart.a", "2 weeks ago", None, "late rows"),
        ),
        ("/sqlmesh restate mart.a “x\u202ey”", RestateCommand("mart.a", None, None, "x y")),
        ("/sqlmesh restate mart.A OFF", RestateCommand("mart.A")),
        # Four blanks make a block of code, three do not.
        (" /sqlmesh plan", PlanCommand()),
        ("   /sqlmesh plan", PlanCommand()),
        ("/sqlmesh cleanup", CleanupCommand()),
        ("/sqlmesh status\n", StatusCommand()),
        ("/sqlmesh help", HelpCommand()),
        ("/sqlmesh help apply", HelpCommand()),
        ("/sqlmesh estimate", EstimateCommand()),
        ("/sqlmesh", HelpCommand()),
        ("/sqlmesh   \nx", HelpCommand()),
        (f"/sqlmesh apply {PLAN}", ApplyCommand(PLAN)),
        (f"/sqlmesh apply {PLAN.upper()}", ApplyCommand(PLAN)),
        (f"/sqlmesh apply `{PLAN}`", ApplyCommand(PLAN)),
        ("/sqlmesh apply 12345678", ApplyCommand("12345678")),
        (f"/sqlmesh apply {'a' * 64}", ApplyCommand("a" * 64)),
        (f'/sqlmesh apply {PLAN} --override "data is fake"', ApplyCommand(PLAN, "data is fake")),
        (f"/sqlmesh apply {PLAN} --override “data is fake”", ApplyCommand(PLAN, "data is fake")),
        (f'/sqlmesh apply --override "hot fix" {PLAN}', ApplyCommand(PLAN, "hot fix")),
        (f"/sqlmesh apply {PLAN} --override urgent", ApplyCommand(PLAN, "urgent")),
        (f"/sqlmesh apply {PLAN} --override=urgent", ApplyCommand(PLAN, "urgent")),
        (f'/sqlmesh apply {PLAN} --override "a\u202eb\x07c"', ApplyCommand(PLAN, "a b c")),
        (
            '/sqlmesh accept join-changed mart.a "one row a key"',
            AcceptCommand("join-changed", "mart.a", "one row a key"),
        ),
        (f"/sqlmesh apply {PLAN} --probe", ApplyCommand(PLAN, probe=True)),
        (f"/sqlmesh apply --probe {PLAN} --override x", ApplyCommand(PLAN, "x", probe=True)),
        (
            "/sqlmesh accept `R06-breaking-rebuild` `mart.a` fine\r\nmore",
            AcceptCommand("R06-breaking-rebuild", "mart.a", "fine"),
        ),
        (
            '/sqlmesh accept select-star "a b.c d" “x\u202ey”',
            AcceptCommand("select-star", "a b.c d", "x y"),
        ),
    ],
)
def test_parse_command__takes(body: str, command: CommandLine) -> None:
    assert parse_comment_command(body) == command


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\n/sqlmesh plan",
        "    /sqlmesh plan",
        "\t/sqlmesh plan",
        " \t/sqlmesh plan",
        "\u00a0/sqlmesh plan",
        " > /sqlmesh plan",
        " `/sqlmesh plan`",
        "> /sqlmesh plan",
        "`/sqlmesh plan`",
        "please /sqlmesh plan",
        "/sqlmeshplan",
        "/sqlmesh-plan",
        "/SQLMeshPlan",
        "/\u017fqlmesh plan",
        "/sqlme\u017fh plan",
        "\uff0fsqlmesh plan",
        "/\u0455qlmesh plan",
        "\ufeff/sqlmesh plan",
        "/deploy",
        "<!-- sqlmesh-plan-review {} -->\n/sqlmesh plan",
    ],
)
def test_parse_command__is_no_command(body: str) -> None:
    assert parse_comment_command(body) is None


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("destroy", "This verb is not known."),
        ("\u017ftatus", "This verb is not known."),
        ("pl\u0430n", "This verb is not known."),
        (f"apply\u00a0{PLAN}", "not an ordinary one"),
        (f"apply {PLAN} --Probe", "knows two options"),
        ("plan now", "`/sqlmesh plan` takes no arguments."),
        ("cleanup pr_8", "`/sqlmesh cleanup` takes no arguments."),
        ("status --all", "`/sqlmesh status` takes no arguments."),
        ("apply", "`/sqlmesh apply` needs the id of the plan"),
        ("apply 1234567", "A plan id has 8 to 64 hexadecimal digits"),
        (f"apply {'a' * 65}", "A plan id has 8 to 64 hexadecimal digits"),
        ("apply latest", "A plan id has 8 to 64 hexadecimal digits"),
        (f"apply {PLAN} {PLAN}", "takes one plan id"),
        (f"apply {PLAN} --force", "knows two options"),
        (f"apply {PLAN} -y", "knows two options"),
        (f"apply {PLAN} --probe --probe", "stands twice"),
        ("apply --probe", "`/sqlmesh apply` needs the id of the plan"),
        (f"apply {PLAN} --probe=yes", "knows two options"),
        (f"apply {PLAN} --override", "needs a reason"),
        (f'apply {PLAN} --override ""', "needs a reason"),
        (f'apply {PLAN} --override "  \u200b "', "needs a reason"),
        (f"apply {PLAN} --override --override x", "needs a reason"),
        (f"apply {PLAN} --override a --override b", "stands twice"),
        (f'apply {PLAN} --override "unclosed', "A quote is not closed"),
        (f'apply {PLAN} --override a"b', "A quote is not closed"),
        (f'apply {PLAN} --override "a"b', "A quote is not closed"),
        (f'apply {PLAN} --override "{"r" * (LONGEST_REASON + 1)}"', "The reason is longer"),
        ("restate", "takes a model"),
        ("restate mart.a", "takes a model"),
        ("restate mart.a late rows have come", "takes a model"),
        ('restate "" "x"', "needs the name of the model"),
        ('restate mart.a ""', "ends with a reason"),
        # Whoever forgets the reason must not get all of history for a date.
        ("restate mart.a 2024-01-01", "ends with a reason"),
        ("restate mart.a 2024-01-01 2024-01-07", "ends with a reason"),
        ("restate mart.a 2024-01-01T10:00:00Z", "ends with a reason"),
        ('restate mart.a "1 week ago"', "ends with a reason"),
        ("restate mart.a Yesterday", "ends with a reason"),
        ("restate mart.a 2024-01-01 off", "takes no dates"),
        (f'restate mart.a "{"r" * (LONGEST_REASON + 1)}"', "The reason is longer"),
        (f'restate mart.a {"2" * 41} "x"', "A date is written as"),
        ('restate mart.a "" "x"', "A date is written as"),
        ('restate mart.a 2024\u200b "x"', "A date is written as"),
        ("accept", "takes a rule, a model and a reason in quotes"),
        ("accept join-changed mart.a", "takes a rule, a model and a reason in quotes"),
        ("accept join-changed mart.a it is fine", "takes a rule, a model and a reason in quotes"),
        ('accept join_changed mart.a "x"', "letters, digits and hyphens"),
        ('accept join-changed "" "x"', "needs the name of the model"),
        ('accept join-changed mart.a ""', "needs a reason"),
        ('accept join-changed mart.a "  \u200b "', "needs a reason"),
        (f'accept a mart.a "{"r" * (LONGEST_REASON + 1)}"', "The reason is longer"),
        (f"help {'x' * LONGEST_LINE}", "The line is longer"),
    ],
)
def test_parse_command__wrong_line_is_help_with_the_problem(line: str, problem: str) -> None:
    command = parse_comment_command(f"{PREFIX} {line}")
    assert isinstance(command, HelpCommand)
    assert command.problem is not None
    assert problem in command.problem


@pytest.mark.parametrize("blank", ["\u00a0", "\u2007", "\u2028", "\u200b", "\ufeff", "\x0b"])
def test_parse_command__a_blank_of_another_kind_is_answered(blank: str) -> None:
    command = parse_comment_command(f"{PREFIX}{blank}plan")
    assert isinstance(command, HelpCommand)
    assert "not an ordinary one" in (command.problem or "")


def test_parse_command__every_usage_line_is_a_command() -> None:
    lines = [
        line.replace("<plan-id>", PLAN)
        .replace("<rule> <model>", "join-changed mart.a")
        .replace("<model> [<start> [<end>]]", "mart.a 2024-01-01 yesterday")
        .replace("<model>", "mart.a")
        .translate(str.maketrans("", "", "[]"))
        for line in USAGE
    ]
    parsed = [parse_comment_command(line) for line in lines]
    assert parsed == [
        PlanCommand(),
        ApplyCommand(PLAN, "reason", probe=True),
        EstimateCommand(),
        AcceptCommand("join-changed", "mart.a", "reason"),
        RestateCommand("mart.a", "2024-01-01", "yesterday", "reason"),
        RestateCommand("mart.a"),
        CleanupCommand(),
        StatusCommand(),
        HelpCommand(),
    ]


WORDS = st.sampled_from(
    [
        "plan",
        "apply",
        "accept",
        "restate",
        "off",
        "2024-01-01",
        "estimate",
        "cleanup",
        "status",
        "help",
        PLAN,
        "--override",
        '"',
        "“",
        "”",
        "--",
        "`",
        "\\",
    ]
)
LINES = st.lists(WORDS | st.text(max_size=8), max_size=8).map(" ".join)


@settings(max_examples=1_000, deadline=None)
@given(st.text(max_size=60) | LINES.map(lambda line: f"{PREFIX} {line}"))
def test_parse_command__any_text_is_none_or_a_clean_command(body: str) -> None:
    command = parse_comment_command(body)
    first = re.split("[\r\n]", body)[0]
    begins = re.match(rf" {{0,3}}{PREFIX}", first, re.IGNORECASE | re.ASCII)
    next_letter = first[begins.end() : begins.end() + 1] if begins else ""
    assert (command is not None) == bool(
        begins and (next_letter in ("", " ", "\t") or not next_letter.isprintable())
    )
    match command:
        case ApplyCommand(plan_id, override):
            assert re.fullmatch(r"[0-9a-f]{8,64}", plan_id)
            assert override is None or override.isprintable()
            assert override is None or 0 < len(override) <= LONGEST_REASON
        case AcceptCommand(rule, model, reason):
            assert re.fullmatch(r"[A-Za-z0-9-]+", rule)
            assert model.isprintable()
            assert reason.isprintable()
            assert 0 < len(reason) <= LONGEST_REASON
        case RestateCommand(model, start, end, reason):
            assert model.isprintable()
            assert all(date.isprintable() for date in (start, end) if date is not None)
            assert reason is None or (reason.isprintable() and 0 < len(reason) <= LONGEST_REASON)
            assert reason is not None or (start, end) == (None, None)
        case HelpCommand(problem):
            # Nothing of the comment comes back, so it cannot carry a mention or markup.
            assert problem is None or set(problem) <= set(
                string.ascii_letters + ' .,;:`/<>-"0123456789'
            )
            assert problem is None or "@" not in problem


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_parse_command__only_the_first_line_counts(below: str, other: str) -> None:
    line = f'{PREFIX} apply {PLAN} --override "ok"'
    assert (
        parse_comment_command(f"{line}\n{below}")
        == parse_comment_command(f"{line}\r\n{other}")
        == ApplyCommand(PLAN, "ok")
    )


@settings(max_examples=300, deadline=None)
@given(
    st.text("0123456789abcdefABCDEF", min_size=8, max_size=64),
    st.none()
    | st.text(string.ascii_letters + string.digits + " .,:;!?#@'-_/", min_size=1, max_size=80),
)
def test_parse_command__apply_round_trip(plan_id: str, reason: str | None) -> None:
    option = "" if reason is None else f' --override "{reason}"'
    command = parse_comment_command(f"{PREFIX} apply {plan_id}{option}")
    if reason is not None and (not reason.strip() or reason.strip().startswith("--")):
        assert isinstance(command, HelpCommand)
    else:
        assert command == ApplyCommand(plan_id.lower(), None if reason is None else reason.strip())
