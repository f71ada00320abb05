"""A file speaks for a model only where the base branch's version of it is of that model."""

from __future__ import annotations

import pytest

from ci_bot.bot.policy.model_owners import FilesOfOwnedModels, does_file_name_owned_model
from ci_bot.bot.policy.policy import Policy, compare_ignore_comments_for_policy
from tests.unit.policy.given import WEIGHTS
from tests.unit.policy.test_weighing import risk, weighing, weight_of

MODEL = "finance.invoices"
IGNORE = "ignore:\n- {rule: join-changed, paths: scratch/*, reason: x, until: 2026-12-01}\n"

NAMES = [
    ("models/a.sql", "MODEL (name finance.invoices, kind FULL); SELECT 1", True),
    ("models/a.sql", "MODEL (\n  kind FULL,\n  NAME `finance`.`Invoices`\n);\nSELECT 1", True),
    ("models/a.sql", 'MODEL (name "finance".invoices);', True),
    ("models/a.sql", "MODEL (name scratch.mine); SELECT name finance.invoices", False),
    ("models/a.sql", "MODEL (name finance.invoices_old);", False),
    ("models/a.sql", "MODEL (name x.finance.invoices);", False),
    ("models/a.sql", "MODEL (name invoices);", False),
    ("models/a.sql", "MODEL (name @{team}.invoices, blueprints ((team := finance)));", False),
    ("models/finance/invoices.sql", "MODEL (kind FULL); SELECT name AS x FROM y", True),
    ("models/scratch/invoices.sql", "MODEL (kind FULL); SELECT 1", False),
    ("models/finance/invoices.sql", "MODEL (name scratch.mine); SELECT 1", False),
    ("models/a.py", '@model("finance.invoices", columns={})\ndef f(): ...', True),
    ("models/a.py", "@model(\n    name='finance.invoices',\n)\ndef f(): ...", True),
    ("models/a.py", "@model(NAME)\ndef f(): ...  # finance.invoices", False),
    ("models/a.sql", None, False),
]


@pytest.mark.parametrize(("path", "text", "expected"), NAMES)
def test_file__names_its_model_in_letters(path: str, text: str | None, expected: bool) -> None:
    assert does_file_name_owned_model(text, path, MODEL) is expected


def files(before: str | None, *, new: tuple[str, ...] = ()) -> FilesOfOwnedModels:
    """mart.a stands in scratch/a.sql, which had this text."""
    return FilesOfOwnedModels.from_models(
        {"mart.a": "scratch/a.sql"}, {"scratch/a.sql": before}, new=frozenset(new)
    )


def test_place__of_a_model_that_was_there_counts() -> None:
    found = files("MODEL (name mart.a);")
    assert found.has_proof_for("mart.a", "scratch/a.sql")
    assert found.has_proof_for(None, "scratch/a.sql")
    assert FilesOfOwnedModels().has_proof_for("mart.a", "scratch/a.sql"), (
        "nothing of the file differs"
    )
    assert not found.has_proof_for("mart.a", None)
    assert not files("", new=("scratch/b",)).has_proof_for(None, "scratch/b")


def test_ignore__of_files_is_not_about_a_model_that_is_taken_into_one_of_them() -> None:
    was_there, taken_in = files("MODEL (name mart.a);"), files("MODEL (name scratch.a);")
    found = risk(path="scratch/a.sql")
    assert weight_of(weighing(IGNORE, files=was_there), found) == "none"
    assert weight_of(weighing(IGNORE, files=taken_in), found) == "high"


def test_comment__is_not_about_a_model_that_is_taken_into_its_file() -> None:
    old = "MODEL (name scratch.a);\n-- review: ignore[join-changed] a sandbox\nSELECT 1"
    comments = compare_ignore_comments_for_policy(
        [("scratch/a.sql", old, old.replace("scratch.a", "mart.a"))], WEIGHTS
    )
    found = risk(path="scratch/a.sql")
    assert weight_of(weighing(Policy(), comments=comments), found) == "none"
    assert weight_of(weighing(Policy(), comments=comments, files=files(old)), found) == "high"
