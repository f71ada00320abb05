"""The recordings are what the worker says today. What needs Spark is recorded by hand."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests import nights
from tests.golden.record import KINDS, RECORDED, WITHOUT_SPARK, against_base, read
from tests.golden.stable import stable

pytestmark = pytest.mark.slow


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "name",
    nights.cases(WITHOUT_SPARK.keys(), by_day=["leaked_key", "destructive_change", "base_branch"]),
)
def test_recording__a_fresh_one_is_the_same(name: str, tmp_path: Path) -> None:
    fresh = against_base(WITHOUT_SPARK[name](), tmp_path)
    stored = (RECORDED / f"{name}.json").read_text("utf-8")

    difference = difflib.unified_diff(stored.splitlines(), fresh.splitlines(), "stored", "fresh")
    assert fresh == stored, "\n".join([*difference][:40]) + (
        "\nif the change is wanted: python -m tests.golden.record, then tests.golden.samples"
    )


@pytest.mark.parametrize("name", KINDS)
def test_recording__has_every_field_of_today_s_contract(name: str) -> None:
    """One that is older shows comments that nobody gets any more: without an example, say."""
    stored = (RECORDED / f"{name}.json").read_text("utf-8")
    assert stable(read(name)) == stored, (
        f"older than the contract: python -m tests.golden.record {name}"
    )
