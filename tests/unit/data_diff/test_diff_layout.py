"""Which columns are compared, and which keys can be used."""

from __future__ import annotations

import pytest

from ci_bot.worker.data_diff.column_comparison import DiffColumnLayout, lay_out_diff_columns

PROD = [("id", "int"), ("name", "string"), ("amount", "decimal(10,2)"), ("old", "date")]
PR = [("id", "int"), ("new", "string"), ("amount", "double"), ("name", "string")]


def names(layout: DiffColumnLayout) -> list[str]:
    return [column.shown_name for column in layout.value_columns]


def test_lay_out__pairs_by_name_and_reports_the_rest() -> None:
    layout = lay_out_diff_columns(PROD, PR, ["id"])
    assert layout.impossible is None
    assert [key.shown_name for key in layout.keys] == ["id"]
    assert names(layout) == ["name", "amount"]
    assert layout.schema.added == ["new"]
    assert layout.schema.removed == ["old"]
    assert layout.schema.changed == ["amount"]


def test_lay_out__case_alone_is_no_difference() -> None:
    layout = lay_out_diff_columns(
        [("ID", "int"), ("Name", "string")], [("id", "int"), ("nAME", "string")], ["Id"]
    )
    assert [(key.prod, key.pr) for key in layout.keys] == [("ID", "id")]
    assert [(column.prod, column.pr) for column in layout.value_columns] == [("Name", "nAME")]
    assert not layout.schema.added
    assert not layout.schema.removed


def test_lay_out__names_that_differ_in_case_stay_apart() -> None:
    both = [("id", "int"), ("a", "int"), ("A", "string")]
    layout = lay_out_diff_columns(both, both, ["id"])
    assert [(column.prod, column.pr) for column in layout.value_columns] == [("a", "a"), ("A", "A")]
    layout = lay_out_diff_columns(
        [("id", "int"), ("a", "int")], [("id", "int"), ("A", "int"), ("a", "int")], ["id"]
    )
    assert [(column.prod, column.pr) for column in layout.value_columns] == [("a", "a")]
    assert layout.schema.added == ["A"]


def test_lay_out__skipped_columns_are_left_out_but_never_keys() -> None:
    layout = lay_out_diff_columns(PROD, PR, ["id"], ["NAME", "id", "unknown"])
    assert names(layout) == ["amount"]
    assert [key.shown_name for key in layout.keys] == ["id"]


def test_lay_out__a_key_named_twice_is_one_key() -> None:
    assert len(lay_out_diff_columns(PROD, PR, ["id", "ID"]).keys) == 1


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ([], "The model has no grain and no unique key of columns, so its rows cannot be paired."),
        (["old"], "The key column old is not in the PR environment's table."),
        (["new"], "The key column new is not in prod's table."),
        (["id", "nowhere"], "The key column nowhere is in neither table."),
    ],
)
def test_lay_out__no_usable_key(keys: list[str], sentence: str) -> None:
    layout = lay_out_diff_columns(PROD, PR, keys)
    assert layout.impossible == sentence
    assert layout.schema.added == ["new"]


def test_lay_out__keys_that_spark_cannot_join() -> None:
    tags = [("tags", "map<string,int>")]
    assert lay_out_diff_columns(tags, tags, ["tags"]).impossible == (
        "Spark cannot join on the key column tags, a map<string,int>."
    )
    assert lay_out_diff_columns([("id", "double")], [("id", "string")], ["id"]).impossible == (
        "The key column id changed its type from double to string."
    )


def test_unknown__same_type_on_both_sides_but_not_comparable() -> None:
    layout = lay_out_diff_columns(
        [("id", "int"), ("gap", "interval"), ("x", "boolean")],
        [("id", "int"), ("gap", "interval"), ("x", "int")],
        ["id"],
    )
    assert [column.shown_name for column in layout.unknown_columns] == ["gap"]
