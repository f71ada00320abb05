"""Whose doing a failure is."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.decision import sort_load_failures_for_decision
from ci_bot.bot.decision.load_failure_cause import (
    OTHERS_SHOWN,
    SortedFailuresForDecision,
    combine_load_failures_for_decision,
    is_change_unread_by_sqlmesh,
)
from ci_bot.protocol.base import Failure

PARSE = "Failed to load model from file '{}':\n\n  Expecting ). Line 12, Col: 9."
MODULE = "`{}` imports `pytest`, which is not installed here."


def failed(path: str | None, message: str = PARSE, **parts: Any) -> Failure:
    values: dict[str, Any] = {"stage": "load", "reason_code": "failed", "exit_code": 1}
    return Failure(**values | {"message": message.format(path), "path": path} | parts)


A, B = failed("models/a.sql"), failed("models/b.sql", PARSE.replace("12", "4"))


def test_blame__where_both_sides_fail_alike_and_the_file_is_untouched__is_the_base_s() -> None:
    found = sort_load_failures_for_decision([A], [A], ["models/c.sql"])
    assert (found.new, found.old) == ((), (A,))


def test_blame__where_the_base_loads__is_the_pull_request_s() -> None:
    assert sort_load_failures_for_decision([A], [], ["models/c.sql"]).new == (A,)


def test_blame__where_the_base_was_not_loaded__is_the_pull_request_s() -> None:
    assert sort_load_failures_for_decision([A], None, ["README.md"]).new == (A,)


def test_blame__where_the_changed_files_are_unknown__is_the_pull_request_s() -> None:
    assert sort_load_failures_for_decision([A], [A], None).new == (A,)


def test_blame__where_the_failing_file_was_touched__is_the_pull_request_s() -> None:
    assert sort_load_failures_for_decision([A], [A], ["models/a.sql"]).new == (A,)


def test_blame__where_the_message_does_not_name_the_touched_file__is_the_pull_request_s() -> None:
    silent = failed("models/a.sql", "Expecting ).")
    assert sort_load_failures_for_decision([silent], [silent], ["models/a.sql"]).new == (silent,)


def test_blame__where_a_file_that_the_message_names_was_touched__is_the_pull_request_s() -> None:
    lacks = failed("models/s.sql", "{}: No such file: 'seeds/data/s.csv'")
    assert sort_load_failures_for_decision([lacks], [lacks], ["seeds/data/s.csv"]).new == (lacks,)
    # Another file whose name only ends alike.
    assert sort_load_failures_for_decision([lacks], [lacks], ["s.csv", "data/s.csv"]).new == ()


def test_blame__of_a_new_failure_beside_an_old_one__names_the_new_one() -> None:
    found = sort_load_failures_for_decision([A, B], [A], ["macros/m.py"])
    assert (found.new, found.old) == ((B,), (A,))


def test_blame__of_another_cause_in_the_same_untouched_file__is_the_pull_request_s() -> None:
    other = failed("models/a.sql", "{}: Macro 'gone' does not exist.")
    assert sort_load_failures_for_decision([other], [A], ["macros/m.py"]).new == (other,)


def test_blame__of_one_cause_that_surfaces_in_different_files__is_the_base_s() -> None:
    # Which of many files with one missing module is met first, chance decides.
    head, base = failed("macros/t/x.py", MODULE), failed("macros/t/y.py", MODULE)
    assert sort_load_failures_for_decision([head], [base], ["models/c.sql"]).old == (head,)


def test_blame__of_addresses_that_differ__is_the_base_s() -> None:
    head = failed("models/a.py", "<function f at 0x7f001>")
    base = failed("models/a.py", "<function f at 0x7fABC>")
    assert sort_load_failures_for_decision([head], [base], ["models/c.sql"]).old == (head,)


def test_blame__of_what_a_broken_configuration_has_hidden__is_the_base_s() -> None:
    configuration = failed("config.yaml", "broken", stage="configuration", exit_code=2)
    assert sort_load_failures_for_decision([A], [configuration], ["config.yaml"]).old == (A,)
    assert sort_load_failures_for_decision(
        [A], [configuration], ["config.yaml", "models/a.sql"]
    ).new == (A,)
    # Nothing hides a configuration's failure but another one of the same file's.
    another = failed("other.yaml", "worse", stage="configuration", exit_code=2)
    assert sort_load_failures_for_decision([another], [configuration], ["macros/m.py"]).new == (
        another,
    )


def test_blame__of_a_pull_request_that_touches_documentation_only__is_never_its_own() -> None:
    assert sort_load_failures_for_decision([A], [B], ["README.md", "docs/model.png"]).old == (A,)


def test_blame__names_the_pull_request_s_own_files_first() -> None:
    found = sort_load_failures_for_decision(
        [A, B], [failed("models/c.sql", "{}: else")], ["models/b.sql"]
    )
    assert found.new == (B, A)


@pytest.mark.parametrize(
    ("files", "nothing"),
    [
        (["README.md"], True),
        (["docs/a.rst", "LICENSE", ".github/workflows/ci.yml", "img/x.PNG"], True),
        (["docs/a.markdown", "contributors.txt", "TODO"], True),
        (["docs/readme.txt", "README", "Contributing.TXT", "logs/run.log"], True),
        ([], True),
        (["README.md", "models/a.sql"], False),
        (["models/readme.sql"], False),
        (["models/CHANGELOG.sql"], False),
        (["models/history.py"], False),
        (["macros/todo.py"], False),
        (["seeds/changes.csv"], False),
        (["logs/a.txt"], False),
        (["requirements.txt"], False),
        (["models/schema.yaml"], False),
        ([".env"], False),
        (["data/customers.csv"], False),
        (None, False),
    ],
)
def test_reads_nothing_of__only_where_every_file_is_prose(
    files: list[str] | None, nothing: bool
) -> None:
    assert is_change_unread_by_sqlmesh(files) is nothing


def test_in_one__of_a_single_failure__is_that_failure() -> None:
    assert (
        combine_load_failures_for_decision(
            SortedFailuresForDecision((A,), ()), base_is_broken=False
        )
        == A
    )


def test_in_one__names_the_other_files_once_and_counts_the_rest() -> None:
    others = [failed(f"models/x{number}.sql") for number in range(OTHERS_SHOWN + 2)]
    told = combine_load_failures_for_decision(
        SortedFailuresForDecision((A, *others, others[0], failed(None)), ()), base_is_broken=False
    ).message
    assert told.startswith(A.message)
    assert "models/x0.sql, models/x1.sql" in told
    assert told.endswith(" and 2 more.")
    assert told.count("models/x0.sql") == 1


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ((), "The base branch does not load either."),
        ((B,), "does not load either; 1 of its failures are here unchanged."),
    ],
)
def test_in_one__says_that_the_base_is_broken_too(old: tuple[Failure, ...], words: str) -> None:
    assert combine_load_failures_for_decision(
        SortedFailuresForDecision((A,), old), base_is_broken=True
    ).message.endswith(words)


def test_blame__of_a_library_that_the_base_lacks_too__is_the_base_s_whatever_was_touched() -> None:
    base = failed("config.py", MODULE, reason_code="missing_module")
    found = sort_load_failures_for_decision([base], [base], ["config.py"])
    assert (found.new, found.old) == ((), (base,))


def test_blame__of_a_library_that_the_base_does_not_need__is_the_pull_request_s() -> None:
    """In the same file, beside one that the base lacks; and a file of the project's own."""
    base = failed("models/a.py", MODULE, reason_code="missing_module")
    other = failed("models/a.py", MODULE.replace("pytest", "scipy"), reason_code="missing_module")
    assert sort_load_failures_for_decision([other], [base], ["models/a.py"]).new == (other,)
    moved = failed("models/a.sql", reason_code="missing_file")
    assert sort_load_failures_for_decision([moved], [moved], ["models/a.sql"]).new == (moved,)
