"""Whose a removed model is: the pull request's wherever a file that it changes can have held it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ci_bot.worker.planning.describe_plan import (
    is_in_foreign_schema,
    list_models_removed_by_others,
    list_schemas_of_models,
)

GONE = '"lake"."shop"."gone"'
OTHER = "MODEL (name shop.other, kind FULL);\nSELECT 1 AS one\n"


def is_of_others(
    before: dict[str, str | None],
    *,
    caused: frozenset[str] | None = frozenset(),
    unread: tuple[str, ...] = (),
    readers: tuple[str, ...] = (),
) -> bool:
    """Whether the removal is somebody else's.

    Args:
        before: The changed files with their text on the base branch; None where they are new.
        readers: Models of the project that still read the removed one.
    """
    texts = {path: text.encode() for path, text in before.items() if text is not None}
    nodes = {name: SimpleNamespace(depends_on={GONE}) for name in readers}
    found = list_models_removed_by_others(
        [GONE],
        nodes,
        caused=caused,
        changed_files=before,
        before=texts.get,
        unread=unread,
    )
    return GONE in found


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"README.md": "gone\n"},
        {"models/new.sql": None},
        {"models/other.sql": OTHER},
        {"models/other.py": "from sqlmesh import model\n@model('shop.other')\ndef f(): ...\n"},
        {"models/other.py": "import sqlmesh\n@sqlmesh.model(name='shop.other')\ndef f(): ...\n"},
        {"external_models.yaml": "- name: raw.orders\n"},
        {"LICENSE": "MIT\n", ".gitignore": "gone\n", "Makefile": "gone:\n"},
    ],
)
def test_removal__that_no_changed_file_can_have_made__is_of_others(
    before: dict[str, str | None],
) -> None:
    assert is_of_others(before)


@pytest.mark.parametrize(
    "before",
    [
        {"models/x.sql": "MODEL (name shop.gone, kind FULL);\nSELECT 1 AS one\n"},
        {"models/x.sql": "model (kind FULL, name `Shop`.`GONE`);\nSELECT 1 AS one\n"},
        {"models/gone.sql": "MODEL (kind FULL);\nSELECT 1 AS one\n"},
        {"models/x.sql": "MODEL (name @{customer}.x, blueprints ((customer := a)));\nSELECT 1\n"},
        {"models/x.sql": "MODEL (name @name_of(1), kind FULL);\nSELECT 1 AS one\n"},
        {"models/x.py": "@model('shop.gone', kind='FULL')\ndef f(): ...\n"},
        {"models/x.py": "@model(NAME, kind='FULL')\ndef f(): ...\n"},
        {"models/x.py": "@model('shop.@{x}', blueprints=[{'x': 'y'}])\ndef f(): ...\n"},
        {"models/x.py": "for n in N:\n    model(f'shop.{n}')(f)\n# @model\n"},
        {"external_models.yaml": "- name: shop.gone\n"},
        {"models/linked": "../elsewhere"},
    ],
)
def test_removal__that_a_changed_file_can_have_made__is_the_pull_requests(
    before: dict[str, str | None],
) -> None:
    assert not is_of_others(before)


def test_removal__where_not_everything_is_known__is_the_pull_requests() -> None:
    assert not is_of_others({"README.md": "x"}, caused=None)
    assert not is_of_others({"models/large.sql": None}, unread=("models/large.sql",))
    assert not is_of_others({"models/\ufffd.sql": None})


def test_removal__of_what_a_changed_model_reads__is_the_pull_requests() -> None:
    assert not is_of_others(
        {"models/other.sql": OTHER}, caused=frozenset({"mine"}), readers=("mine",)
    )
    assert is_of_others(
        {"models/other.sql": OTHER}, caused=frozenset({"mine"}), readers=("theirs",)
    )


def test_lies_elsewhere__is_a_schema_of_no_model_of_the_project() -> None:
    own = list_schemas_of_models(['"lake"."shop"."a"', '"lake"."raw"."b"'])
    assert not is_in_foreign_schema(GONE, own)
    assert is_in_foreign_schema('"lake"."beta"."b"', own)
    assert is_in_foreign_schema('"other"."shop"."b"', own)
