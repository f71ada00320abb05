"""What SQLMesh's reader makes of the text of a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.rules.world import change, seen

SEED = """MODEL (
  name ref.skus,
  kind SEED (path '../seeds/skus.csv'{settings}),
  columns (code STRING, country STRING, since DATE, amount INT)
);"""
HEADER = "code,country,since,amount\n"
BEFORE = HEADER + "0071a,AT,2024-01-31,1\n"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The evidence of the rule on a seed that changes from `before`, None for a new one."""
    # SQLMesh reads a seed where its model says that it is.
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)
    for folder in ("models", "seeds"):
        (tmp_path / folder).mkdir()

    def look(after: str, before: str | None = BEFORE, settings: str = "") -> list[str]:
        (tmp_path / "seeds" / "skus.csv").write_text(before or after, encoding="utf-8")
        model = {"models/skus.sql": SEED.format(settings=settings)}
        inputs = change(
            model if before is not None else {},
            model,
            other_before={"seeds/skus.csv": before} if before is not None else None,
            other_after={"seeds/skus.csv": after},
        )
        return [found.evidence for found in seen(inputs, "seed-misread")]

    return look


@pytest.mark.parametrize("word", ["NA", "null", "N/A", "None", "nan"])
def test_text__that_stands_for_nothing(told: Callable[..., list[str]], word: str) -> None:
    (evidence,) = told(BEFORE + f"b,{word},2024-02-01,2\n")
    assert "`country` is NULL" in evidence
    assert f"`{word}`" in evidence


def test_text__that_stands_for_nothing_and_is_kept(told: Callable[..., list[str]]) -> None:
    kept = ", csv_settings (keep_default_na = false)"
    assert told(BEFORE + "b,NA,2024-02-01,2\n", settings=kept) == []


def test_text__that_was_taken_for_nothing_before(told: Callable[..., list[str]]) -> None:
    before = BEFORE + "b,NA,2024-02-01,2\n"
    assert told(before + "c,NA,2024-02-01,3\n", before=before) == []


@pytest.mark.parametrize(("code", "read"), [("0071", "71"), ("1e5", "100000.0"), ("12.50", "12.5")])
def test_text__in_a_column_of_numbers_only(
    told: Callable[..., list[str]], code: str, read: str
) -> None:
    (evidence,) = told(HEADER + f"{code},AT,2024-01-31,1\n")
    assert f"`{code}` as `{read}`" in evidence


def test_text__beside_a_letter_stays_as_it_is(told: Callable[..., list[str]]) -> None:
    assert told(BEFORE + "0071,AT,2024-01-31,1\n") == []


@pytest.mark.parametrize("day", ["01.05.1998", "1/5/1998", "15.09.2003", "05-01-1998"])
def test_date__with_day_and_month_in_doubt(told: Callable[..., list[str]], day: str) -> None:
    (evidence,) = told(BEFORE + f"b,DE,{day},2\n")
    assert day in evidence


@pytest.mark.parametrize("day", ["1998-05-01", "", "05.05.1998"])
def test_date__that_can_be_read_in_one_way(told: Callable[..., list[str]], day: str) -> None:
    assert told(BEFORE + f"b,DE,{day},2\n") == []


def test_file__that_pandas_refuses_is_another_rules_matter(told: Callable[..., list[str]]) -> None:
    assert told(BEFORE + 'b,"DE,2024-01-01,2\n') == []


def test_file__that_is_new_is_read_as_well(told: Callable[..., list[str]]) -> None:
    assert len(told(HEADER + "a,NA,2024-01-31,1\n", before=None)) == 1
