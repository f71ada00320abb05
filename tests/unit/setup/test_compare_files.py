"""A planned file beside what is there: whose it is, whether anybody edited it, which pins move."""

from __future__ import annotations

import pytest

from ci_bot.bot.cli.setup.compare_files import (
    ComparedSetupFile,
    SetupSignature,
    compare_setup_files,
    is_setup_file_unedited,
    move_pins_in_setup_file,
    read_signature_of_setup_file,
    sign_setup_file,
)
from ci_bot.bot.cli.setup.plan_files import PlannedSetupFile

OLD, NEW, ZEROS = "0a" * 20, "0b" * 20, "0" * 40
MADE_WITH = SetupSignature("apply", ("sales", "finance"), "prod")


def text(commit: str = NEW, version: str = "v2.0.0", more: str = "") -> str:
    return f"steps:\n  - uses: actions/checkout@{commit} # {version}\n{more}"


def compared(
    there: str | None, planned: str = text(), *, upgrade: bool = False, is_kept: bool = False
) -> ComparedSetupFile:
    file = PlannedSetupFile("a.yml", planned, "It is one.", is_kept)
    existing = {} if there is None else {"a.yml": there}
    (found,) = compare_setup_files([file], existing, MADE_WITH, upgrade=upgrade)
    return found


def signed(body: str) -> str:
    return sign_setup_file(body, MADE_WITH)


@pytest.mark.parametrize(
    ("there", "upgrade", "status", "written"),
    [
        (None, False, "new", signed(text())),
        (signed(text()), False, "same", None),
        (signed(text()), True, "same", None),
        # An older ci-bot has written it: its commits stay until they are asked to move.
        (signed(text(OLD, "v1.0.0")), False, "same", None),
        (signed(text(OLD, "v1.0.0")), True, "changed", signed(text())),
        (signed(text(more="# gone\n")), False, "changed", signed(text())),
        (signed(text(OLD, "v1.0.0", "# gone\n")), False, "changed", signed(text(OLD, "v1.0.0"))),
        (signed(text()).replace("steps", "jobs"), False, "edited", None),
        (signed(text()).replace("steps", "jobs"), True, "edited", None),
        # Written below the last line, or saved with the line ends of another system.
        (signed(text()) + "# mine\n", False, "edited", None),
        (signed(text()).replace("\n", "\r\n"), False, "edited", None),
        (
            signed(text(OLD, "v1.0.0")).replace("steps", "jobs"),
            True,
            "moved",
            signed(text(OLD, "v1.0.0"))
            .replace("steps", "jobs")
            .replace(f"{OLD} # v1", f"{NEW} # v2"),
        ),
        (text(), False, "changed", signed(text())),
        ("on: push\n", True, "foreign", None),
    ],
)
def test_compare__says_what_becomes_of_a_file(
    there: str | None, upgrade: bool, status: str, written: str | None
) -> None:
    found = compared(there, upgrade=upgrade)
    assert (found.status, found.text) == (status, written)
    assert bool(found.diff) == (status in ("edited", "moved"))


def test_compare__what_people_edit_is_theirs() -> None:
    assert compared(None, is_kept=True).text == text()
    assert compared("anything", is_kept=True).status == "kept"


def test_compare__other_options_write_the_last_line_anew() -> None:
    there = sign_setup_file(text(), SetupSignature("review", (".",)))
    assert compared(there).text == signed(text())


@pytest.mark.parametrize(
    "made_with",
    [MADE_WITH, SetupSignature("review", (".",)), SetupSignature("full", ("a/b-c_d",), "x.y")],
)
def test_signature__gives_the_options_back(made_with: SetupSignature) -> None:
    made = sign_setup_file(text(), made_with)
    assert read_signature_of_setup_file(made) == made_with
    assert is_setup_file_unedited(made)
    assert not is_setup_file_unedited(made.replace("steps", "jobs"))
    assert read_signature_of_setup_file(made + "# more\n") is None, "it is the last line"


def test_pins__move_by_the_actions_name() -> None:
    source = f"uses: a/b@{NEW} # v2\nuses: acme/sqlmesh-plan-review/review@{NEW} # v2\n"
    before = (
        f"uses: a/b@{OLD} # v1\nuses: a/c@{OLD} # v1\n"
        f"uses: team/sqlmesh-plan-review/review@{OLD}\nuses: a/b@v1\n"
    )
    assert move_pins_in_setup_file(before, source) == (
        f"uses: a/b@{NEW} # v2\nuses: a/c@{OLD} # v1\n"
        f"uses: acme/sqlmesh-plan-review/review@{NEW} # v2\nuses: a/b@v1\n"
    )


def test_pins__the_placeholder_moves_nothing() -> None:
    assert move_pins_in_setup_file(f"a/b@{NEW} # v2", f"a/b@{ZEROS} # v0.0.0") == f"a/b@{NEW} # v2"
