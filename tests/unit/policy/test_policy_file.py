"""Reading a policy: what it may hold, and one sentence with the line for everything else."""

from __future__ import annotations

import re
import time
from datetime import date
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.policy.policy_file import MOST_POLICY_BYTES, UnfitPolicy, read_policy
from ci_bot.yaml_reader import UnfitYaml, read_plain_yaml
from tests.unit.policy.given import PATH, TODAY, WEIGHTS, policy

WHOLE = """\
    # What the warehouse team has agreed on
    version: 1
    severity:
      - rule: select-star
        severity: low
        models: [staging.*, "tag:scratch & ^mart.*"]
        reason: staging follows its sources
      - rule: [join-changed, missing-grain]
        severity: off
        owner: research
        reason: nobody reads these
    ignore:
      - rule: personal-data-exposed
        models: crm.contacts
        reason: reviewed by the privacy team
        until: 2027-01-31
      - {rule: hardcoded-secret, paths: tests/fixtures/*, reason: made up, until: 2026-12-31}
    statements:
      - target: audit.load_log
        reason: every load is written down
    personal-data:
      schemas: [crm, raw_*]
    limits:
      max-intervals: 5000
      max-executor-hours: 40
      diff-tolerance: 0.001
      fail-on: high
    comment:
      executor-hour-price: 0.42 EUR
    data-diff:
      - models: mart.estimates
        tolerance: 0.05
        reason: a model's output
    owners:
      - models: finance.*
        github: ["@alice", acme/finance]
    """


def problem(text: str | bytes, **more: object) -> UnfitPolicy:
    content = dedent(text).encode() if isinstance(text, str) else text
    with pytest.raises(UnfitPolicy) as caught:
        read_policy(content, path=PATH, rules=WEIGHTS, today=TODAY)
    return caught.value


def test_policy__with_everything_in_it_is_read_with_lines() -> None:
    found = policy(WHOLE)
    low, off = found.severity
    assert (low.rule, low.severity, low.line) == (["select-star"], "low", 4)
    assert (off.rule, off.severity, off.line) == (["join-changed", "missing-grain"], "off", 8)
    assert [entry.line for entry in found.ignore] == [13, 17]
    assert found.ignore[0].until == date(2027, 1, 31)
    assert found.ignore[0].source_position == f"{PATH} line 13"
    assert found.statements[0].does == ["writes"]
    assert found.personal_schemas == ["crm", "raw_*"]
    assert found.limits.max_executor_hours == 40
    assert found.limits.fail_on == "high"
    assert str(found.executor_hour_price) == "0.42 EUR"
    assert found.owners[0].github == ["alice", "acme/finance"]


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "severity:\n", "ignore: []\n", "\ufeff{}"])
def test_policy__without_entries_is_one(text: str) -> None:
    assert policy(text).entries == []


def test_policy__of_two_files__has_the_last_ones_limits() -> None:
    found = policy("limits: {max-intervals: 5, fail-on: never}", "limits: {max-intervals: 7}")
    assert found.limits.max_intervals == 7
    assert found.limits.fail_on == "never"


ENTRY = "severity:\n- rule: select-star\n  severity: low\n  reason: it is so\n"

WRONG = {
    "unknown rule": (
        "severity:\n- rule: select-sta\n  severity: low\n  reason: x\n",
        2,
        "there is no rule `select-sta` (did you mean `select-star`?)",
    ),
    "unknown rule in a list": (
        "severity:\n- rule:\n  - select-star\n  - none-such\n  severity: low\n  reason: x\n",
        4,
        "there is no rule `none-such`",
    ),
    "unknown key": ("serverity: []\n", 1, "`serverity` is no key here (did you mean `severity`?)"),
    "unknown key of an entry": (f"{ENTRY}  untill: x\n", 5, "`untill` is no key here"),
    "unknown key of limits": (
        "limits:\n  max-interval: 3\n",
        2,
        "`max-interval` is no key here (did you mean `max-intervals`?)",
    ),
    "no reason": ("severity:\n- rule: select-star\n  severity: off\n", 2, "`reason` is missing"),
    "empty reason": (ENTRY.replace("it is so", "'  '"), 4, "`reason` must say something"),
    "reason of control characters": (
        ENTRY.replace("it is so", '"a\\u202eb"'),
        4,
        "`reason` must hold printable characters only",
    ),
    "unknown severity": (ENTRY.replace("low", "lwo"), 3, "`severity` must be `blocker`"),
    "every rule without a scope": (
        ENTRY.replace("select-star", "'*'"),
        2,
        "`rule: '*'` needs `models`, `owner` or `paths`",
    ),
    "no such day": (
        "ignore:\n- rule: select-star\n  models: a\n  reason: x\n  until: 2027-02-30\n",
        5,
        "2027-02-30 is no day of the calendar",
    ),
    "no date": (
        "ignore:\n- rule: select-star\n  models: a\n  reason: x\n  until: soon\n",
        5,
        "must be a date, as in 2027-03-31",
    ),
    "no end": (
        "ignore:\n- rule: select-star\n  models: a\n  reason: x\n",
        2,
        "`until` is missing",
    ),
    "an end in many years": (
        "ignore:\n- rule: select-star\n  models: a\n  reason: x\n  until: 2099-01-01\n",
        5,
        "`until` is more than a year away; 2027-11-23 is the latest day",
    ),
    "ignore of everything": (
        "ignore:\n- rule: select-star\n  reason: x\n  until: 2027-01-01\n",
        2,
        "an ignore needs `models` or `paths`",
    ),
    "selection by git": (
        "ignore:\n- rule: select-star\n  models: +git:main\n  reason: x\n  until: 2027-01-01\n",
        3,
        "cannot select by `git:`",
    ),
    "a protected rule made lighter": (
        ENTRY.replace("select-star", "hardcoded-secret"),
        2,
        "`hardcoded-secret` is not made lighter, because it keeps credentials out",
    ),
    "a rule that has one weight": (
        ENTRY.replace("select-star", "R12-code-on-load"),
        2,
        "`R12-code-on-load` always has its own weight",
    ),
    "an ignored rule that has one weight": (
        "ignore:\n- rule: R12-code-on-load\n  models: a\n  reason: x\n  until: 2027-01-01\n",
        2,
        "always has its own weight",
    ),
    "an account with a blank": (
        "owners:\n- models: a\n  github: a b\n",
        3,
        "`github` must be a login or `organization/team` of GitHub",
    ),
    "an owner of nothing": ("owners:\n- github: alice\n", 2, "an owner needs `models` or `owner`"),
    "a limit that is text": (
        "limits:\n  max-intervals: many\n",
        2,
        "`max-intervals` must be a whole number, and not `many`",
    ),
    "a limit below zero": ("limits:\n  max-intervals: -1\n", 2, "must be 0 or more"),
    "a tolerance above one": ("limits:\n  diff-tolerance: 2\n", 2, "must be at most 1"),
    "a limit that is a flag": ("limits:\n  max-intervals: true\n", 2, "must be a whole number"),
    "a list as document": ("- rule: x\n", 1, "it must hold keys"),
    "text as document": ("policy\n", 1, "it must hold keys"),
    "text where a list is": ("severity: low\n", 1, "`severity` must be a list"),
    "a key twice": (
        "limits:\n  fail-on: high\n  fail-on: never\n",
        3,
        "the key `fail-on` is in line 2, too",
    ),
    "a key that is a list": ("? [a]\n: b\n", 1, "a key is a list or a mapping"),
    "an alias": ("version: &v 1\nlimits: *v\n", 2, "aliases (`*name`) are not taken"),
    "a merge": ("a: &a {b: 1}\nc:\n  <<: *a\n", 3, "aliases (`*name`) are not taken"),
    "a tag": ("version: !!python/object:os.system 1\n", 1, "tags (`!name`) are not taken"),
    "two documents": ("version: 1\n---\nversion: 1\n", 2, "a second document begins"),
    "too deep": ("a: [[[[[[[[[[[1]]]]]]]]]]]\n", 1, "nested more than 10 deep"),
    "no YAML": ("severity:\n- rule: [a\n", 3, "it is not YAML"),
    "an open account": ("owners:\n- models: a\n  github: @alice\n", 3, "it is not YAML"),
    "a control character": ("version: 1\n# \x07\n", 2, "characters that YAML does not allow"),
    "another version": ("version: 2\n", 1, "`version` must be 1, and not `2`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_policy__that_is_wrong__says_in_which_line(case: str) -> None:
    text, line, told = WRONG[case]
    error = problem(text)
    assert error.exit_code == 2
    assert error.reason_code == "bad_policy"
    assert (error.path, error.line) == (PATH, line)
    assert f"line {line}: " in error.message
    assert told in error.message
    assert error.message.startswith(f"The policy `{PATH}` cannot be used: ")
    assert error.message.endswith(".")
    assert "\n" not in error.message


def test_policy__with_several_mistakes__names_them_in_the_order_of_lines() -> None:
    error = problem(ENTRY.replace("low", "lwo").replace("  reason: it is so\n", "") + "limit: {}\n")
    assert re.findall(r"line (\d+): ", error.message) == ["2", "3", "4"]


def test_policy__with_very_many_mistakes__counts_the_rest() -> None:
    error = problem("".join(f"k{number}: 1\n" for number in range(20)))
    assert error.message.count("is no key here") == 5
    assert "and 15 more" in error.message


def test_policy__that_is_not_utf8__says_in_which_line() -> None:
    error = problem(b"version: 1\n# caf\xe9\n")
    assert (error.line, "it is not UTF-8" in error.message) == (2, True)


def test_policy__that_is_too_large__is_not_parsed() -> None:
    error = problem(b"#" * (MOST_POLICY_BYTES + 1))
    assert "more than 64 KiB" in error.message


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 30_000,
        "a: " + "{b: " * 10_000,
        "- " * 30_000,
        "? " * 30_000,
        "\n".join(
            ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30))]
        ),
    ],
    ids=["lists", "mappings", "items", "keys", "aliases"],
)
def test_yaml__that_would_grow_without_end__is_refused_at_once(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(UnfitYaml):
        read_plain_yaml(text)
    assert time.process_time() - begun < 2


def test_yaml__with_too_many_values__is_refused() -> None:
    with pytest.raises(UnfitYaml, match="more than 20,000 values"):
        read_plain_yaml("\n".join(["a:", *["- b"] * 20_001]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("no", "no"),
        ("2027-01-01", "2027-01-01"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("5", 5),
        ("-5", -5),
        ("0.5", 0.5),
        ("1e5", "1e5"),
        ("0o17", "0o17"),
        ("012", "012"),
        ("true", True),
        ("~", None),
        ("1_000", "1_000"),
        (".inf", ".inf"),
    ],
)
def test_yaml__value_is_what_it_looks_like(text: str, value: object) -> None:
    found = read_plain_yaml(f"a: {text}\n").data["a"]
    assert found == value
    assert type(found) is type(value)


def test_yaml__line_of_what_is_not_there_is_that_of_what_would_hold_it() -> None:
    lines = read_plain_yaml("a:\n  b:\n  - c: 1\n")
    assert lines.find_line_of_part(("a", "b", 0, "c")) == 3
    assert lines.find_line_of_part(("a", "b", 0, "d")) == 3
    assert lines.find_line_of_part(("x",)) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(st.binary(max_size=200), st.text("ab:-[]{}*&!'\"#\n ", max_size=120).map(str.encode))
)
def test_policy__of_any_bytes__is_one_or_is_refused_in_one_sentence(content: bytes) -> None:
    try:
        read_policy(content, path=PATH, rules=WEIGHTS, today=TODAY)
    except UnfitPolicy as error:
        assert "\n" not in error.message
        assert (error.line or 0) >= 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("comment:\n  header: |\n    Hello @octocat\n", "line 2: `header` must mention nobody"),
        ("comment:\n  footer: <b>x</b>\n", "line 2: `footer` must hold no HTML"),
        (
            "messages:\n- rule: join-changed\n  message: a | b\n",
            "line 3: `message` must be one line",
        ),
        ("messages:\n- rule: no-such\n  message: x\n", "line 2: there is no rule `no-such`"),
    ],
)
def test_words__that_are_not_taken__are_one_sentence_with_their_line(text: str, told: str) -> None:
    with pytest.raises(UnfitPolicy) as refused:
        policy(text)
    assert told in refused.value.message
