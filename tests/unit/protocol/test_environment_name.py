"""Names of environments: which mean prod, which SQLMesh would change, and whose they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlmesh.core.environment import EnvironmentNamingInfo

from ci_bot.protocol.environment import (
    MOST_CHARACTERS,
    EnvironmentName,
    UnfitEnvironmentName,
    is_environment_prefix,
    is_name_of_prod_environment,
    normalize_environment_name,
    parse_cleanup_environment,
    read_pull_number,
)
from ci_bot.protocol.messages import REQUEST

# Letters that lower to something else or to more than one, digits of other scripts, marks, blanks.
ODD = "PROD prodİſKǅﬁ٣७_-.;`'\"/\\\u200b\u00a0\ufeff\u0307\nß"
TEXTS = st.one_of(
    st.text(max_size=30),
    st.text(alphabet=ODD, max_size=8),
    st.sampled_from(["prod", "PROD", "Prod ", " prod", "\tprod\n", "pr od", "prod\u200b", "prod_"]),
)
PREFIXES = st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True)
NUMBERS = st.integers(min_value=1, max_value=9_999_999_999)


def why(text: str) -> UnfitEnvironmentName:
    with pytest.raises(UnfitEnvironmentName) as raised:
        EnvironmentName(text)
    return raised.value


@given(TEXTS)
def test_normalised__is_what_sqlmesh_makes_of_a_name(text: str) -> None:
    assert normalize_environment_name(text) == EnvironmentNamingInfo.sanitize_name(text)


@given(TEXTS)
def test_name__is_one_that_sqlmesh_leaves_as_it_is_and_never_prod(text: str) -> None:
    try:
        name = EnvironmentName(text)
    except UnfitEnvironmentName:
        return
    info = EnvironmentNamingInfo(name=name)
    assert info.name == name == text
    assert info.is_dev


@pytest.mark.parametrize("text", ["prod", "PROD", "Prod ", " prod", "\tpRoD\n", "prod\u00a0"])
def test_name__of_prod_in_any_spelling__is_refused(text: str) -> None:
    error = why(text)
    assert (error.reason_code, error.exit_code) == ("prod", 3)
    assert error.message.endswith("prod is never written from here.")
    assert error.message.startswith("prod" if text == "prod" else "`")
    assert is_name_of_prod_environment(text)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("", "is empty", "such as `pr_17`"),
        (" \t ", "is empty", "such as `pr_17`"),
        ("pr 7", "SQLMesh would make `pr_7` of it", "Write `pr_7`"),
        ("PR_7", "SQLMesh would make `pr_7` of it", "Write `pr_7`"),
        ("pr-7; drop", "SQLMesh would make `pr_7__drop` of it", "Write `pr_7__drop`"),
        ("prod\u200b", "SQLMesh would make `prod_` of it", "Write `prod_`"),
        ("İ", "SQLMesh would make", "letters a to z"),
        ("dév", "Spark takes no schema", "letters a to z"),
        ("pr_٣", "Spark takes no schema", "letters a to z"),
        ("ｐｒｏｄ", "Spark takes no schema", "letters a to z"),
        ("a" * (MOST_CHARACTERS + 1), "has 101 characters", f"at most {MOST_CHARACTERS}"),
        ("prod" + " " * 300, "has 304 characters", f"at most {MOST_CHARACTERS}"),
    ],
)
def test_name__that_would_be_another__says_which(text: str, says: str, hint: str) -> None:
    error = why(text)
    assert (error.reason_code, error.exit_code) == ("bad_environment", 2)
    assert says in error.message
    assert hint in error.hint
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("text", "number", "told"),
    [
        ("dev", None, "`dev` is not the name of a PR environment, so it is not removed."),
        ("pr_8", 7, "`pr_8` is not the name of the environment of #7, so it is not removed."),
        ("x" * 60, None, f"`{'x' * 60}` is not"),
        ("x" * 61, None, f"`{'x' * 60}…` is not"),
    ],
)
def test_cleanup__of_another_environment__says_whose_it_is_not(
    text: str, number: int | None, told: str
) -> None:
    with pytest.raises(UnfitEnvironmentName) as raised:
        parse_cleanup_environment(text, prefix="pr", number=number)
    assert raised.value.message.startswith(told)


def test_name__of_the_most_characters__is_one() -> None:
    assert EnvironmentName("a" * MOST_CHARACTERS) == "a" * MOST_CHARACTERS


@given(PREFIXES, NUMBERS)
def test_of__is_a_prefix_and_a_number_and_no_other(prefix: str, number: int) -> None:
    assert is_environment_prefix(prefix)
    name = EnvironmentName.for_pull_request(prefix, number)
    assert name == f"{prefix}_{number}"
    assert name.pull_request_number(prefix) == number
    assert name.pull_request_number(f"{prefix}_") is None
    assert name.pull_request_number(f"x{prefix}") is None


@pytest.mark.parametrize("text", ["7; DROP", "prod", "../7", "7.0", "", "seven"])
def test_of__never_comes_from_text(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        EnvironmentName.for_pull_request("pr", text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "7",
            "_7",
            "pr",
            "pr_",
            "pr_0",
            "pr_007",
            "pr_07",
            "pr_1x",
            "pr__1",
            "pr_1_2",
            "PR_7",
            "pr_7 ",
        ),
        *(
            "pr_٣",
            "pr_-1",
            "pr_+1",
            "pr_1.0",
            "pr_1e3",
            "pr_99999999999",
            "prod",
            "xpr_7",
            "pr_7\n",
        ),
    ],
)
def test_number__of_what_is_no_pull_requests(text: str) -> None:
    assert read_pull_number(text, "pr") is None


def asked(activity: str, environment: object, *, pull: int | None, **more: Any) -> Any:
    """What the worker reads of a request, whatever the bot has looked at."""
    place = {"repository": "/r", "cache_dir": "/c", "scratch_dir": "/s"}
    request = {
        "activity": activity,
        "projects": ["/r"],
        "workplace": place,
        "owner": {"name": "octo/shop", "pr_number": pull},
        "environment": environment,
        **more,
    }
    return REQUEST.validate_json(json.dumps(request))


@pytest.mark.parametrize(
    ("activity", "environment", "pull", "reason", "exit_code"),
    [
        ("review", "prod", 7, "bad_environment", 2),
        ("review", " PROD", None, "bad_environment", 2),
        ("review", "pr 7", None, "bad_environment", 2),
        ("apply", "prod", 7, "prod", 3),
        ("apply", "PROD", None, "prod", 3),
        ("apply", "Prod ", None, "prod", 3),
        ("apply", "pr 7", None, "bad_environment", 2),
        ("apply", "pr_8", 7, "not_a_pr_environment", 3),
        ("apply", "dev", 7, "not_a_pr_environment", 3),
        ("apply", "pr_007", 7, "not_a_pr_environment", 3),
        ("cleanup", "prod", 7, "not_a_pr_environment", 3),
        ("cleanup", "dev", None, "not_a_pr_environment", 3),
        ("cleanup", "pr_8", 7, "not_a_pr_environment", 3),
        ("cleanup", "pr_٧", 7, "not_a_pr_environment", 3),
        ("cleanup", "", 7, "bad_environment", 2),
    ],
)
def test_request__with_a_name_that_must_not_be_used__is_not_read(
    activity: str, environment: str, pull: int | None, reason: str, exit_code: int
) -> None:
    with pytest.raises(UnfitEnvironmentName) as raised:
        asked(activity, environment, pull=pull)
    failure = raised.value.make_failure("input")
    assert (failure.reason_code, failure.exit_code) == (reason, exit_code)
    assert failure.hint


@pytest.mark.parametrize("activity", ["apply", "cleanup"])
def test_request__to_claim__is_a_persons_and_never_a_workflows(activity: str) -> None:
    assert asked(activity, "pr_7", pull=None, claim=True).claim
    with pytest.raises(UnfitEnvironmentName) as raised:
        asked(activity, "pr_7", pull=7, claim=True)
    assert (raised.value.reason_code, raised.value.exit_code) == ("claim", 3)


def test_request__of_a_sweep__is_about_pull_requests_only() -> None:
    target = {"environment": "pr_7", "pr_number": 7}
    more: dict[str, Any] = {"targets": [target]}
    place = {"repository": "/r", "cache_dir": "/c", "scratch_dir": "/s"}
    request = {"projects": ["/r"], "workplace": place, "owner": {"name": "octo/shop"}}
    sweep = {"activity": "sweep", **request}
    assert REQUEST.validate_json(json.dumps({**sweep, **more}))
    for wrong in ({"pr_number": 8}, {"environment": "pr_007"}, {"environment": "prod"}):
        text = json.dumps({**sweep, "targets": [{**target, **wrong}]})
        with pytest.raises(UnfitEnvironmentName):
            REQUEST.validate_json(text)


def test_request__on_a_laptop__may_be_about_any_other_environment() -> None:
    assert asked("apply", "dev_ada", pull=None).environment == "dev_ada"
    assert asked("review", "dev", pull=None).environment == "dev"


@pytest.mark.parametrize("prefix", ["", "PR", "7", "_pr", "pr-", "pr ", "p" * 32])
def test_prefix__that_is_none__is_bad_input(prefix: str) -> None:
    assert not is_environment_prefix(prefix)
    with pytest.raises(UnfitEnvironmentName) as raised:
        asked("cleanup", "pr_7", pull=7, environment_prefix=prefix)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "number", "way"),
    [
        ("dev", None, "run `sqlmesh invalidate dev --sync`"),
        # A workflow removes what is its pull request's; and nobody is told to remove prod.
        ("dev", 7, None),
        ("prod", None, None),
        ("PROD ", None, None),
        ("a b; rm", None, None),
    ],
)
def test_cleanup__of_another_environment__says_what_removes_it(
    text: str, number: int | None, way: str | None
) -> None:
    with pytest.raises(UnfitEnvironmentName) as raised:
        parse_cleanup_environment(text, prefix="pr", number=number)
    assert ("invalidate" in raised.value.hint) == (way is not None)
    assert way is None or way in raised.value.hint
