"""A review with `cache: base` says what one without it says: the cases that live here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import nights
from tests.corpus.labelled import Case, read_cases
from tests.corpus.with_cache import compare

CASES = {case.id: case for case in read_cases(Path(__file__).parent)}
BY_DAY = tuple(CASES)[:1]


@pytest.mark.parametrize("case", nights.cases(CASES, by_day=BY_DAY))
def test_review__with_a_cache_says_the_same(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `compare` changes the directory, and this puts it back.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLMESH__DISABLE_ANONYMIZED_ANALYTICS", "true")

    compared = compare(case, tmp_path / case.id)

    assert compared.noted, "the base loads, and some of its files are noted"
    assert compared.taken, "the review takes some of them"
    assert compared.differs == []
