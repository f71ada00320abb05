"""What the first sentence says if owners let prod build models again after the merge."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.protocol.review_inputs import ProdRestatement
from tests.golden.samples import report
from tests.unit.report.test_check_run import check

WORK = report("small_change").work[0].model_copy(update={"preview": False})
DAYS: dict[str, Any] = {"start": "2024-01-01T00:00:00Z", "end": "2024-01-08T00:00:00Z"}
ALL: dict[str, Any] = {"start": None, "end": None}


def restated(model: str, *built: str, by: str = "ada", **dates: Any) -> ProdRestatement:
    recorded = {
        **{"model": model, "fingerprint": "1", "rebuilds": list(built), "by": by},
        **{"at": "2024-02-01T00:00:00Z", "reason": "late", "comment_id": 1},
        **{"head_sha": None, "prod_plan_id": None},
        **dates,
    }
    return ProdRestatement.model_validate(
        {
            "recorded": recorded,
            "work": [WORK.model_copy(update={"model": name}) for name in built],
        }
    )


CASES = {
    "with readers": (
        [restated("a.b", "a.b", "a.c", "a.d", **DAYS)],
        "builds a.b again from 2024-01-01 to 2024-01-07, and 2 models that read it, as @ada asks.",
    ),
    "that nobody reads": (
        [restated("a.b", "a.b", **ALL)],
        "builds a.b again with all of its history, as @ada asks.",
    ),
    "without a table of its own": (
        [restated("raw.a", "a.c", **DAYS)],
        "builds 1 model that reads raw.a again from 2024-01-01 to 2024-01-07, as @ada asks.",
    ),
    "of two models": (
        [restated("a.b", "a.b", **ALL), restated("a.c", "a.c", by="bob", **DAYS)],
        "builds a.b and a.c again, and what reads them, as @ada, @bob ask.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_restatement__is_named_with_its_dates_and_readers(case: str) -> None:
    items, sentence = CASES[case]
    found = report("no_changes").model_copy(
        update={"prod_restatements": items, "decision": "go", "head_sha": "a" * 40}
    )
    made = check(found)
    assert made.title == f"Go: After the merge prod {sentence}"
    assert sentence in made.summary.replace("`", "")


def test_restatement__without_a_change__says_who_carries_it_out() -> None:
    found = report("no_changes").model_copy(
        update={
            "prod_restatements": [restated("a.b", "a.b", "a.c", **DAYS)],
            "decision": "go",
            "head_sha": "a" * 40,
        }
    )
    said = "there is nothing to apply here: after the merge, the deployment builds 2 models again"
    assert said in check(found).summary
    changed = found.model_copy(update={"changes": report("small_change").changes})
    assert said not in check(changed).summary
