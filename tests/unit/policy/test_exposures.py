"""Readers outside of the project: in the policy, in a file in dbt's form, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import pytest

from ci_bot.bot.policy.comparison import list_policy_changes
from ci_bot.bot.policy.exposures import (
    MOST_EXPOSURE_BYTES,
    MOST_EXPOSURES,
    PolicyExposure,
    describe_stale_policy_exposures,
    list_names_exposed_by_policy,
    read_dependency_of_exposure,
    read_exposures_listed_by_policy,
)
from ci_bot.bot.policy.policy import Policy
from ci_bot.bot.policy.policy_file import UnfitPolicy
from ci_bot.bot.policy.severity_overrides import describe_policy_entry
from ci_bot.protocol.review_inputs import ExposedModel
from tests.unit.policy.given import PATH, TODAY, WEIGHTS, policy

LISTED = """\
    exposures:
      - name: Revenue dashboard
        owner: ["@alice", acme/finance, bi@acme.example]
        reads:
          finance.invoices: [Amount, paid_at]
          finance.customers: all
      - name: Row counter
        owner: bob
        reads:
          finance.invoices: []
    """
FILE = "exposures:\n  - file: models/exposures.yml\n"
DBT = """\
    version: 2
    models:
      - name: fct_orders
    exposures:
      - name: weekly_metrics
        label: Jaffles by the week
        type: dashboard
        maturity: high
        url: https://bi.example/dashboards/1
        description: >
          Who knows
        depends_on:
          - ref('fct_orders')
          - ref('other_project', 'dim_customers')
          - source('gsheets', 'goals')
          - metric('count_orders')
          - finance.daily
        owner:
          name: Callum McData
          email: data@jaffle.example
        meta:
          columns:
            fct_orders: [order_id, AMOUNT]
      - name: export
        depends_on: "{{ ref('fct_orders', v=2) }}"
        owner:
          github: "@alice"
          email: data@jaffle.example
    """


def listed(text: str, entry: str = FILE) -> tuple[PolicyExposure, ...]:
    """The exposures of a file that a policy names."""
    content = dedent(text).encode()
    return read_exposures_listed_by_policy(
        policy(entry).files, lambda paths: [content] * len(paths)
    )


def problem(text: str) -> str:
    with pytest.raises(UnfitPolicy) as caught:
        policy(text)
    return caught.value.message


def test_exposures__of_the_policy__have_owners_and_columns() -> None:
    first, second = policy(LISTED).exposures
    assert (first.name, first.accounts, first.contacts) == (
        "Revenue dashboard",
        ("alice", "acme/finance"),
        ("bi@acme.example",),
    )
    assert first.reads == {"finance.invoices": ("amount", "paid_at"), "finance.customers": None}
    assert (second.accounts, second.reads) == (("bob",), {"finance.invoices": ()})
    assert first.source_position == f"{PATH} line 2"
    assert first.owners == "`@alice` and `@acme/finance` and `bi@acme.example`"
    assert list_names_exposed_by_policy([first, second]) == [
        "finance.invoices",
        "finance.customers",
    ]


def test_exposures__ask_sqlmesh_for_no_selection() -> None:
    assert policy(LISTED).list_scopes() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- name: a\n  owner: b", "needs `name`, `owner` and `reads`, or else `file`"),
        ("- {name: a, owner: b, reads: {}}", "`reads` must be a list with something in it"),
        ("- {name: a, owner: b, reads: {m: amount}}", "`m` must be a list of columns, or `all`"),
        ("- {name: a, owner: b, reads: {m: }}", "`m` must be a list of columns, or `all`"),
        ("- {name: a, owner: Jo Doe, reads: {m: all}}", "must be a login, `organization/team`"),
        ("- {file: a.yml, name: x}", "`file` stands without `name`"),
        ("- {file: ../a.yml}", "`file` must be a file of the repository"),
        ("- {file: /etc/passwd}", "`file` must be a file of the repository"),
        ("- {file: 'C:\\a'}", "`file` must be a file of the repository"),
        ("- {file: a.yml, fiel: x}", "`fiel` is no key here (did you mean `file`?)"),
    ],
)
def test_entry__that_is_wrong__is_one_sentence(text: str, words: str) -> None:
    assert words in problem(f"exposures:\n{text}\n")


def test_file__in_dbts_form__gives_models_owners_and_columns() -> None:
    first, second = listed(DBT)
    assert (first.name, first.path, first.line) == (
        "Jaffles by the week",
        "models/exposures.yml",
        5,
    )
    assert first.reads == {
        "fct_orders": ("order_id", "amount"),
        "dim_customers": None,
        "gsheets.goals": None,
        "finance.daily": None,
    }
    assert (first.accounts, first.contacts) == ((), ("Callum McData", "data@jaffle.example"))
    assert (second.name, second.accounts, second.contacts) == ("export", ("alice",), ())


def test_file__with_an_owner_beside_it__asks_that_one_too() -> None:
    first, second = listed(DBT, f"{FILE}    owner: acme/data\n")
    assert (first.accounts, first.contacts[:1]) == (("acme/data",), ("Callum McData",))
    assert second.accounts == ("alice",)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ref('a')", "a"),
        ('ref("a")', "a"),
        ("{{ ref('p', 'a') }}", "a"),
        ("ref('a', version=2)", "a"),
        ("source('s', 'a')", "s.a"),
        ("shop.a", "shop.a"),
        ("metric('m')", None),
    ],
)
def test_dependency__is_a_name(text: str, name: str | None) -> None:
    assert read_dependency_of_exposure(text) == name


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "line 2: the repository has no file `models/exposures.yml`"),
        (b"a: b", "`models/exposures.yml` cannot be used: line 1: `exposures` is missing"),
        (b"- a", "line 1: it must hold `exposures:`, as dbt's files do"),
        (b"exposures:\n- depends_on: [a]\n", "line 2: `name` is missing"),
        (b"exposures:\n- name: a\n  depends_on: {b: c}\n", "line 3: `depends_on` must be a list"),
        (b"exposures:\n- {name: a, owner: {github: Jo Doe}}\n", "line 2: `Jo Doe` must be a login"),
        (b"exposures: &x [*x]", "line 1"),
        (b"exposures:\n- name: \xff\n", "line 2: it is not UTF-8"),
        (b"#" * (MOST_EXPOSURE_BYTES + 1), "more than 1,024 KiB"),
        (b"exposures:\n" + b"- name: a\n" * (MOST_EXPOSURES + 1), "2,000 are the most"),
    ],
)
def test_file__that_cannot_be_used__is_one_sentence_with_the_line(
    content: bytes | None, words: str
) -> None:
    with pytest.raises(UnfitPolicy) as caught:
        read_exposures_listed_by_policy(policy(FILE).files, lambda paths: [content])
    assert words in caught.value.message


def test_files__are_read_only_if_a_policy_names_some() -> None:
    def refuse(paths: Sequence[str]) -> list[bytes | None]:
        raise AssertionError(paths)

    assert read_exposures_listed_by_policy(policy(LISTED).files, refuse) == ()


def test_entries__have_words() -> None:
    first, _, file = policy(LISTED + "  - {file: a.yml, owner: '@bob'}\n").entries
    assert describe_policy_entry(first) == (
        "`Revenue dashboard` of `alice` and `acme/finance` and `bi@acme.example` reads "
        "`finance.invoices`, `finance.customers` from outside of the project"
    )
    assert describe_policy_entry(file) == (
        "`a.yml` lists readers outside of the project, and asks `bob` where it names nobody on "
        "GitHub"
    )


ONE = PolicyExposure("a", ("bob",), (), {"m": ("x",)})


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([ONE], [], [("the exposure `a` would go", True)]),
        ([], [ONE], [("the exposure `a` would be new", False)]),
        (
            [ONE],
            [PolicyExposure("a", ("bob",), (), {"m": ()})],
            [("the exposure `a` would get other columns or owners", True)],
        ),
        (
            [ONE],
            [PolicyExposure("a", ("eve",), (), {"m": ("x",)})],
            [("the exposure `a` would get other columns or owners", True)],
        ),
        ([ONE], [PolicyExposure("a", ("bob",), (), {"m": ("x",)}, "elsewhere.yml", 9)], []),
    ],
    ids=["gone", "new", "fewer columns", "another owner", "another place"],
)
def test_change__of_exposures__is_told(
    before: list[PolicyExposure], after: list[PolicyExposure], told: list[tuple[str, bool]]
) -> None:
    changes = list_policy_changes(
        Policy((), tuple(before)), Policy((), tuple(after)), weights=WEIGHTS, today=TODAY
    )
    assert [(change.sentence, change.loosens) for change in changes] == told


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            ExposedModel(name="m", model=None, near=["shop.m2"]),
            "reads `m`, which is no model of the project (did you mean `shop.m2`?)",
        ),
        (
            ExposedModel(name="m", model=None, several=True, near=["a.m", "b.m"]),
            "reads `m`, which may be `a.m` or `b.m`: write its schema",
        ),
        (ExposedModel(name="m", model="a.m", columns=["y"]), "reads `x`, which `a.m` does not"),
    ],
)
def test_exposure__of_what_is_not_there__is_a_note(answer: ExposedModel, words: str) -> None:
    (note,) = describe_stale_policy_exposures([ONE], [answer])
    assert note.startswith("Exposures to bring up to date: `a` (")
    assert words in note


def test_exposure__of_what_is_there__is_no_note() -> None:
    for columns in (["x", "y"], None):
        answer = ExposedModel(name="m", model="a.m", columns=columns)
        assert describe_stale_policy_exposures([ONE], [answer]) == []
    assert describe_stale_policy_exposures([ONE], []) == []  # there is no plan
