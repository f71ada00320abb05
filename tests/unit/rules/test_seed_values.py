"""What SQLMesh's reader makes of the text of a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlmesh.core.model import SeedModel

from ci_bot.protocol.plan import Finding
from tests.unit.rules.world import change, models, seen

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


UNTYPED = "MODEL (name ref.skus, kind SEED (path '../seeds/skus.csv'){more});"
READER = (
    "MODEL (name mart.r, kind FULL);\nSELECT {0} FROM ref.skus AS s JOIN raw.orders AS o ON {1}"
)
SUMS = READER.format("s.amount * 2 AS twice", "s.code = o.status")
NUMBERS = "code,amount\nA1,1\nA2,2\n"


@pytest.fixture
def untyped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """The findings on a seed that declares no columns, before as a state gives it back."""
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)
    for folder in ("models", "seeds"):
        (tmp_path / folder).mkdir()

    def look(
        before: str, after: str, reader: str = SUMS, more: str = "", rule: str = "column-retyped"
    ) -> list[Finding]:
        files = {"models/skus.sql": UNTYPED.format(more=more), "models/r.sql": reader}
        (tmp_path / "seeds" / "skus.csv").write_text(before, encoding="utf-8")
        stored = {
            name: model.to_dehydrated() if isinstance(model, SeedModel) else model
            for name, model in models(files).items()
        }
        (tmp_path / "seeds" / "skus.csv").write_text(after, encoding="utf-8")
        inputs = change(
            files,
            files,
            other_before={"seeds/skus.csv": before},
            other_after={"seeds/skus.csv": after},
        )
        found = seen(replace(inputs, before=stored), rule)
        return [item for item in found if item.model == "ref.skus"]

    return look


@pytest.mark.parametrize(
    ("before", "added", "named"),
    [
        (NUMBERS, "A3,n.a.\n", "`n.a.`"),
        (NUMBERS, "A3,1.200\nA4,about 5\n", "`about 5`"),
        ("code,amount\nA1,true\nA2,false\n", "A3,unknown\n", "`unknown`"),
        ("code,amount\nA1,true\nA2,false\n", "A3,\n", "an empty one"),
        ("code,amount\nA1,1.5\nA2,2\n", "A3,2 kg\n", "`2 kg`"),
    ],
)
def test_untyped__a_value_of_another_kind_retypes_the_column(
    untyped: Callable[..., list[Finding]], before: str, added: str, named: str
) -> None:
    (found,) = untyped(before, before + added)
    assert found.severity == "high"
    assert "declares no `columns`" in found.evidence
    assert named in found.evidence
    assert found.clears_when is not None
    assert "declares its `columns`" in found.clears_when


@pytest.mark.parametrize("added", ["A3,\n", "A3,2.5\n"])
@pytest.mark.parametrize(
    ("reader", "more", "severity"),
    [
        (SUMS, "", "medium"),
        (READER.format("s.code", "s.amount = o.order_id"), "", "high"),
        (READER.format("CAST(s.amount AS STRING) AS label", "s.code = o.status"), "", "high"),
        (READER.format("CONCAT('#', s.amount) AS label", "s.code = o.status"), "", "high"),
        (SUMS, ", grain amount", "high"),
    ],
)
def test_untyped__fractions_concern_who_joins_on_them_or_writes_them_as_text(
    untyped: Callable[..., list[Finding]], added: str, reader: str, more: str, severity: str
) -> None:
    (found,) = untyped(NUMBERS, NUMBERS + added, reader, more)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("before", "added"),
    [
        (NUMBERS, "A3,3\n"),
        ("code,amount\nA1,1.5\nA2,2\n", "A3,\n"),
        ("code,amount\nA1,a\nA2,b\n", "A3,3\n"),
        # pandas takes dates for text.
        ("code,amount\nA1,2024-01-01\n", "A3,unknown\n"),
    ],
)
def test_untyped__another_value_of_the_kind(
    untyped: Callable[..., list[Finding]], before: str, added: str
) -> None:
    assert untyped(before, before + added) == []


def test_untyped__with_declared_columns_keeps_its_types(
    untyped: Callable[..., list[Finding]],
) -> None:
    more = ", columns (code STRING, amount INT)"
    assert untyped(NUMBERS, NUMBERS + "A3,\n", more=more) == []


def test_untyped__codes_are_read_as_numbers(untyped: Callable[..., list[Finding]]) -> None:
    (found,) = untyped("code,amount\n71,1\n", "code,amount\n71,1\n0072,2\n", rule="seed-misread")
    assert "`0072` as numbers" in found.evidence


@pytest.mark.parametrize(
    ("before", "added"),
    [
        ("code,amount\n0071,1\n", "0072,2\n"),  # read like this before
        ("code,amount\n71,1\n", "0.5,2\n"),
        ("code,amount\n0071,1\nA1,1\n", "0072,2\n"),  # text
        ("code,amount\n71,1\n", "0,2\n"),
    ],
)
def test_untyped__what_is_no_code_or_no_news(
    untyped: Callable[..., list[Finding]], before: str, added: str
) -> None:
    assert untyped(before, before + added, rule="seed-misread") == []
