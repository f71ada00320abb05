"""Inputs and runner variables: read as they are meant, or refused all at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot import __version__
from ci_bot.bot.actions.inputs import (
    ActionInputs,
    make_variable_name_of_input,
    read_action_settings,
)
from ci_bot.errors import BadInput

RUNNER = {
    "GITHUB_REPOSITORY": "acme/warehouse",
    "GITHUB_WORKSPACE": "/github/workspace",
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_EVENT_PATH": "/github/workflow/event.json",
}


def read(**inputs: str) -> ActionInputs:
    """The inputs of a run, with underscores for dashes."""
    given_ = {
        make_variable_name_of_input(name.replace("_", "-")): value for name, value in inputs.items()
    }
    return read_action_settings({**RUNNER, **given_}).inputs


def problems(environ: dict[str, str]) -> str:
    with pytest.raises(BadInput) as raised:
        read_action_settings(environ)
    assert raised.value.exit_code == 2
    assert raised.value.hint is not None
    return raised.value.message


def test_inputs__that_are_empty__have_their_defaults() -> None:
    empty = {make_variable_name_of_input(name): "" for name in ActionInputs.list_names()}
    blank = {make_variable_name_of_input(name): " \n " for name in ActionInputs.list_names()}

    assert read_action_settings({**RUNNER, **empty}).inputs == ActionInputs()
    assert read_action_settings({**RUNNER, **blank}).inputs == ActionInputs()


def test_inputs__lists_take_lines_and_blanks() -> None:
    inputs = read(
        project="warehouse\n\n  marts with space \n",
        python_path="lib\n shared code\n",
        select_model="shop.orders  shop.revenue\nshop.customers, tag:daily",
        allow_destructive="shop.orders",
    )

    assert inputs.project == ("warehouse", "marts with space")
    assert inputs.python_path == ("lib", "shared code")
    assert inputs.select_model == ("shop.orders", "shop.revenue", "shop.customers", "tag:daily")
    assert inputs.allow_destructive == ("shop.orders",)


def test_inputs__numbers_and_switches() -> None:
    inputs = read(
        pr_number=" 17 ",
        max_intervals="0",
        max_executor_hours="2.5",
        diff_tolerance="1e-6",
        forward_only="true",
        table_diff="false",
        timeout_minutes="5",
    )

    assert (inputs.pr_number, inputs.max_intervals, inputs.max_executor_hours) == (17, 0, 2.5)
    assert (inputs.forward_only, inputs.table_diff) == (True, False)
    assert (inputs.diff_tolerance, inputs.timeout_minutes) == (1e-6, 5)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (
            "mode",
            "reviews",
            "must be one of auto, review, apply, probe, estimate, accept, restate, cleanup, sweep",
        ),
        ("baseline", "prod", "must be one of auto, state, base-branch"),
        ("fail-on", "low", "must be one of blocker, high, never"),
        ("reclaim", "yes", "must be one of auto, never, always"),
        ("environment-prefix", "PR", "must be lower case letters"),
        ("environment-prefix", "7pr", "must be lower case letters"),
        ("environment-prefix", "pr-", "must be lower case letters"),
        ("forward-only", "True", "must be `true` or `false`"),
        ("table-diff", "1", "must be `true` or `false`"),
        ("pr-number", "0", "must be at least 1"),
        ("pr-number", "-3", "must be a whole number"),
        ("pr-number", "1.5", "must be a whole number"),
        ("pr-number", "٣", "must be a whole number"),
        ("pr-number", "9" * 30, "must be a whole number"),
        ("min-intervals", "few", "must be a whole number"),
        ("max-deletions", "0", "must be at least 1"),
        ("timeout-minutes", "0", "must be at least 1"),
        ("plan-id", "1234567", "must be 8 to 64 hexadecimal digits"),
        ("plan-id", "g" * 12, "must be 8 to 64 hexadecimal digits"),
        ("diff-tolerance", "-0.1", "must be a number from 0 to 1"),
        ("diff-tolerance", "nan", "must be a number from 0 to 1"),
        ("executor-hour-price", "0.42", "must be an amount from 0 up and a currency"),
        ("max-executor-hours", "two", "must be a number"),
    ],
)
def test_input__with_a_wrong_value__is_named_with_what_it_may_be(
    name: str, value: str, says: str
) -> None:
    message = problems({**RUNNER, make_variable_name_of_input(name): value})

    assert f"input `{name}` {says}" in message
    assert f"got {value[:60]!r}" in message


def test_problems__come_all_in_one_message() -> None:
    message = problems(
        {
            "GITHUB_API_URL": "ftp://github.example",
            make_variable_name_of_input("mode"): "x",
            make_variable_name_of_input("plan-id"): "x",
            "CI_BOT_TYPO": "x",
        }
    )

    for part in (
        *("GITHUB_REPOSITORY", "GITHUB_WORKSPACE", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH"),
        *("GITHUB_API_URL", "`mode`", "`plan-id`", "`CI_BOT_TYPO`"),
    ):
        assert part in message


def test_unknown_input__is_named__and_what_the_image_sets_is_not() -> None:
    assert "`CI_BOT_PROJEKT` is not an input" in problems({**RUNNER, "CI_BOT_PROJEKT": "."})

    read_action_settings(
        {**RUNNER, "CI_BOT_CONTAINER": "1", "CI_BOT_WORKER_PYTHON": "/usr/bin/python"}
    )


@pytest.mark.parametrize(
    ("url", "fine"),
    [
        ("https://api.github.com", True),
        ("https://github.example/api/v3", True),
        ("http://127.0.0.1:8080", True),
        ("http://localhost", True),
        ("http://[::1]:8080", True),
        ("http://github.example", False),
        ("http://127.0.0.1.example", False),
        ("file:///etc/passwd", False),
        ("github.example", False),
    ],
)
def test_api_url__gets_a_token_over_https_or_loopback_only(url: str, fine: bool) -> None:
    environ = {**RUNNER, "GITHUB_API_URL": url}
    if fine:
        assert read_action_settings(environ).runner.api_url == url
    else:
        assert "no https address" in problems(environ)


def test_runner__says_where_its_page_is() -> None:
    runner = read_action_settings(
        {**RUNNER, "GITHUB_RUN_ID": "42", "GITHUB_RUN_ATTEMPT": "2"}
    ).runner

    assert runner.run_url == "https://github.com/acme/warehouse/actions/runs/42"
    assert runner.run_attempt == 2
    assert read_action_settings(RUNNER).runner.run_url is None


def test_actor__is_who_triggered_the_run_last() -> None:
    both = {**RUNNER, "GITHUB_ACTOR": "first", "GITHUB_TRIGGERING_ACTOR": "second"}

    assert read_action_settings(both).runner.actor == "second"
    assert read_action_settings({**RUNNER, "GITHUB_ACTOR": "first"}).runner.actor == "first"


def test_token__is_in_no_message_and_no_representation() -> None:
    token = "ghs_" + "k" * 36
    settings = read_action_settings({**RUNNER, make_variable_name_of_input("github-token"): token})

    assert settings.inputs.github_token == token
    assert token not in repr(settings)
    assert token not in problems({make_variable_name_of_input("github-token"): token})


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(ActionInputs.list_names()), st.text(max_size=40)))
def test_inputs__of_any_text__are_read_or_refused(inputs: dict[str, str]) -> None:
    environ = {
        **RUNNER,
        **{make_variable_name_of_input(name): value for name, value in inputs.items()},
    }
    try:
        read_ = read_action_settings(environ)
    except BadInput as error:
        assert any(f"`{name}`" in error.message for name in inputs)
        assert error.reason_code == "bad_input"
    else:
        assert read_.prefix.islower()
        assert read_.inputs.timeout_minutes >= 1


def test_rules__are_linked_at_the_tag_or_commit_of_the_action_that_runs() -> None:
    action = {"GITHUB_ACTION_REPOSITORY": "octo/plan-review", "GITHUB_ACTION_REF": "v1"}
    assert read_action_settings({**RUNNER, **action}).runner.rules_url == (
        "https://github.com/octo/plan-review/blob/v1/docs/rules"
    )
    unnamed = {**RUNNER, **action, "GITHUB_ACTION_REF": ""}
    assert read_action_settings(unnamed).runner.rules_url == (
        f"https://github.com/octo/plan-review/blob/v{__version__}/docs/rules"
    )
    assert read_action_settings(RUNNER).runner.rules_url is None, "an action of the checkout itself"
