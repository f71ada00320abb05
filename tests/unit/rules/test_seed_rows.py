"""Which rows of a seed come, go or change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmesh.core.dialect import parse
from sqlmesh.core.model import load_sql_based_model

from ci_bot.worker.review.lineage_inputs import describe_change_beside_query, list_retyped_columns
from ci_bot.worker.rules.files.seed_values import SeedRows, compare_seed_rows
from tests.unit.rules.world import change

SEED = """MODEL (name ref.skus, kind SEED (path '../seeds/skus.csv'));"""
BEFORE = "code,name,price\na,Apple,1\nb,Pear,2\n"

Compare = Callable[..., SeedRows | None]


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """How a seed's rows differ from those of `before`; `prod` was loaded from another text."""
    # SQLMesh reads a seed where its model says that it is.
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)
    for folder in ("models", "seeds"):
        (tmp_path / folder).mkdir()

    def look(after: str, before: str = BEFORE, prod: str | None = None) -> SeedRows | None:
        (tmp_path / "seeds" / "skus.csv").write_text(prod or before, encoding="utf-8")
        model = {"models/skus.sql": SEED}
        inputs = change(
            model,
            model,
            other_before={"seeds/skus.csv": before},
            other_after={"seeds/skus.csv": after},
        )
        return next(iter(compare_seed_rows(inputs).values()), None)

    return look


@pytest.mark.parametrize(
    ("after", "columns", "sentence"),
    [
        (BEFORE + "c,Plum,3\n", (), "It gets 1 more row."),
        ("code,name,price\nc,Plum,3\nd,Fig,4\na,Apple,1\nb,Pear,2\n", (), "It gets 2 more rows."),
        ("code,name,price\nb,Pear,2\n", (), "It loses 1 row."),
        # One is edited, one comes.
        (
            "code,name,price\na,Apple,9\nb,Pear,2\nc,Plum,3\n",
            (),
            "It gets 2 more rows and loses 1 row.",
        ),
        ("code,name,price\na,Apple,1\nb,Pears,2\n", ("name",), None),
        ("code,name,price\nb,Pear,20\na,Apple,1\n", ("price",), None),
        ("code,name,price\nb,Pear,2\na,Apple,1\n", (), None),
        # A column comes, one goes: the lists of columns say that.
        ("code,name,price,unit\na,Apple,1,kg\nb,Pear,2,kg\n", (), None),
        ("code,price\na,1\nb,2\n", (), None),
    ],
)
def test_rows__come_go_or_change(
    compared: Compare, after: str, columns: tuple[str, ...], sentence: str | None
) -> None:
    found = compared(after)
    assert found is not None
    assert (found.columns, found.rows_description) == (columns, sentence)


def test_rows__of_another_text_than_prod_was_loaded_from_are_not_known(compared: Compare) -> None:
    assert compared(BEFORE + "c,Plum,3\n", prod=BEFORE + "z,Other,9\n") is None


def test_rows__of_a_ragged_file_are_not_known(compared: Compare) -> None:
    assert compared(BEFORE + "c,Plum\n") is None


@pytest.mark.parametrize(
    ("rows", "columns", "beside"),
    [
        (SeedRows(columns=("price",)), [("price", "computed")], None),
        (SeedRows(added=1), [], "It gets 1 more row."),
        (SeedRows(), [], None),
    ],
)
def test_impact__says_what_the_rows_say(
    rows: SeedRows, columns: list[tuple[str, str]], beside: str | None
) -> None:
    node = load_sql_based_model(parse("MODEL (name a.b); SELECT 1 AS price"))
    assert list(list_retyped_columns(node, node, rows)) == columns
    assert describe_change_beside_query(node, node, rows) == beside


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("delimiter = ',', quotechar = '\"'", None),
        ("keep_default_na = true", None),
        ("na_values = ['2']", "Its kind changes."),
        ("delimiter = ';'", "Its kind changes."),
        ("skipinitialspace = true", "Its kind changes."),
    ],
)
def test_impact__of_other_settings_is_what_sqlmesh_reads(
    tmp_path: Path, settings: str, told: str | None
) -> None:
    (tmp_path / "skus.csv").write_text("code,name,price\na, Apple,1\nb, Pear,2\n", encoding="utf-8")
    before, after = (
        load_sql_based_model(
            parse(f"MODEL (name ref.skus, kind SEED (path 'skus.csv'{given}))"),
            path=tmp_path / "skus.sql",
        )
        for given in ("", f", csv_settings ({settings})")
    )
    assert describe_change_beside_query(before, after) == told
