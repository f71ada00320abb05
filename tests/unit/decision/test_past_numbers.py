"""One judgement of what a change does to existing rows: decision and headline follow it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from ci_bot.bot.decision.data_evidence import may_risk_be_cleared_by_data
from ci_bot.bot.report.model.changed_rows import judge_past_numbers, read_past_numbers
from ci_bot.protocol.plan import Lineage
from ci_bot.protocol.review_report import ChangedPart, Impact, IndirectModel, ReachedModel
from tests.factories import make_report
from tests.unit.decision.facts import changed, facts, found, judged, only

RULE = "R06-past-numbers"
STATEMENT = "Statements before or after its query change, and they can change rows or values."


def part(how: str, column: str | None = None, **more: Any) -> ChangedPart:
    return ChangedPart.model_validate(
        {"model": "stg.orders", "column": column, "how": how, "why": STATEMENT} | more
    )


def impact(*parts: ChangedPart) -> Impact:
    return Impact(changed=list(parts))


def rules(**parts: Any) -> set[str]:
    return {risk.rule for risk in judged(**parts).risks}


def test_rows__that_change_by_a_non_breaking_change_ask_for_a_review() -> None:
    reader = changed("mart.a", change="indirect", category="indirect_non_breaking")
    judgement = judged(
        changes=[changed(), reader],
        impact=impact(part("rows")),
        lineage=Lineage(edges=[("stg.orders", "mart.a")]),
    )
    risk = only(judgement, RULE)
    assert judgement.decision == "review"
    assert risk.evidence == (
        f"{STATEMENT} The model is built again, and SQLMesh calls the change non-breaking: 1 model "
        "below is not rebuilt and keeps the old rows (`mart.a`)."
    )
    assert "additive-change" not in {item.rule for item in judgement.risks}


def test_columns__that_are_computed_by_other_code_are_named() -> None:
    risk = only(judged(changes=[changed()], impact=impact(part("computed", "tax", why=None))), RULE)
    assert risk.evidence.startswith("`tax` is computed differently. The model")
    assert risk.evidence.endswith("no other model reads it.")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part("added", "tax")],
        [part("reordered")],
        [part("retyped", "tax")],
    ],
)
def test_change__that_leaves_existing_rows_is_go(parts: list[ChangedPart]) -> None:
    judgement = judged(changes=[changed()], impact=impact(*parts))
    assert judgement.decision == "go"
    assert not judgement.past_numbers.changed
    assert only(judgement, "additive-change").clears_when == "nothing to do"


def test_base_branchs_own_change__is_not_judged() -> None:
    assert RULE not in rules(changes=[changed(from_base=True)], impact=impact(part("rows")))


CATEGORIES = ("breaking", "non_breaking", "forward_only", "metadata", "uncategorized")
HOWS = ("computed", "rows", "unknown", "added", "dropped", "reordered")


@pytest.mark.parametrize(
    ("category", "how", "kind", "same"),
    list(product(CATEGORIES, (*HOWS, None), ("FULL", "EXTERNAL", "SEED"), (False, True))),
)
def test_decision__is_never_go_where_past_numbers_change(
    category: str | None, how: str | None, kind: str, same: bool
) -> None:
    column = "amount" if how in ("computed", "added", "dropped") else None
    judgement = judged(
        changes=[changed(category=category, kind=kind)],
        impact=impact(part(how, column)) if how else Impact(),
        findings=[found("same-result", "info", model="stg.orders")] if same else [],
    )
    assert judgement.decision != "go" or not judgement.past_numbers.changed
    if same:
        assert not judgement.past_numbers.changed


@pytest.mark.parametrize(
    ("kind", "past"), [("FULL", True), ("VIEW", True), ("INCREMENTAL_BY_TIME_RANGE", False)]
)
def test_forward_only__history_stays_only_where_the_kind_keeps_it(kind: str, past: bool) -> None:
    reader = changed("mart.a", change="indirect", category="forward_only", kind="VIEW")
    judgement = judged(
        changes=[changed(category="forward_only", kind=kind), reader],
        impact=impact(part("computed", "amount", why=None)),
        lineage=Lineage(edges=[("stg.orders", "mart.a")]),
    )
    assert bool(judgement.past_numbers.changed) is past
    assert (RULE in {item.rule for item in judgement.risks}) is past
    if past:
        assert judgement.decision == "review"
        assert only(judgement, RULE).evidence == (
            "`amount` is computed differently. The plan is forward-only, and this kind of model has "
            "no history that stays: prod's next run computes all of it again, and past numbers "
            "change then, also in what reads it (`mart.a`)."
        )


def test_readers__and_rebuilt_models_are_two_numbers() -> None:
    past = judge_past_numbers(
        facts(
            changes=[
                changed(category="breaking"),
                *(
                    changed(f"mart.m{n}", change="indirect", category="indirect_breaking")
                    for n in range(7)
                ),
                changed("mart.reused", change="indirect", category="indirect_non_breaking"),
                changed(
                    "mart.kept",
                    change="indirect",
                    category="forward_only",
                    kind="INCREMENTAL_BY_TIME_RANGE",
                ),
            ],
            impact=Impact(
                changed=[
                    part(
                        "computed",
                        "a",
                        reached=[ReachedModel(model="mart.m0", columns=["a"], rows=False)],
                    ),
                    part(
                        "computed",
                        "b",
                        reached=[ReachedModel(model="mart.m1", columns=["b"], rows=False)],
                    ),
                    part("added", "c"),
                ],
                indirect=[
                    IndirectModel(model="mart.m0", reached="unknown", why="?"),
                    IndirectModel(model="mart.m2", reached="unknown", why="?"),
                    IndirectModel(model="mart.m3", reached="no", why="-"),
                ],
            ),
        )
    )
    assert past.models == ["stg.orders"]
    assert (past.readers, past.maybe_readers, past.rebuilt) == (2, 1, 7)
    assert past.keeps_history == ["mart.kept"]
    assert past.readers_known
    assert past.certain


def taken_in(*columns: str, rows: bool = False, category: str = "indirect_non_breaking") -> Any:
    """The judgement on a new column that one reader takes in."""
    reached = [ReachedModel(model="mart.a", columns=[*columns], rows=rows)]
    return judged(
        changes=[
            changed(category="non_breaking"),
            changed("mart.a", change="indirect", category=category, kind="FULL"),
        ],
        impact=impact(part("added", "tax", reached=reached)),
        lineage=Lineage(edges=[("stg.orders", "mart.a")]),
    )


@pytest.mark.parametrize(("columns", "rows"), [(("key", "tax"), False), ((), True)])
def test_new_column__that_a_reader_takes_in_changes_its_old_numbers(
    columns: tuple[str, ...], rows: bool
) -> None:
    found = taken_in(*columns, rows=rows)
    assert found.decision == "review"
    assert only(found, RULE).evidence == (
        "`mart.a` takes in the new column `tax` without naming it (by a star, or by a name without "
        "a table), so rows or values of before are computed differently. SQLMesh calls the change "
        "non-breaking."
    )
    assert found.past_numbers.models == ["mart.a"]
    assert not may_risk_be_cleared_by_data(only(found, RULE))  # an apply builds no other `mart.a`
    assert found.past_numbers.readers_known


def test_new_column__that_a_star_only_passes_on_changes_nothing() -> None:
    found = taken_in("tax")
    assert RULE not in {item.rule for item in found.risks}
    assert not found.past_numbers.changed


def test_new_column__of_a_reader_that_is_rebuilt_is_no_second_question() -> None:
    assert RULE not in {item.rule for item in taken_in("key", category="breaking").risks}


def test_readers__are_not_known_where_the_impact_was_cut() -> None:
    known = {"changes": [changed(category="breaking")]}
    cut = Impact(changed=[part("rows")], more_changed=1)
    assert not judge_past_numbers(facts(**known, impact=cut)).readers_known
    assert not judge_past_numbers(facts(**known)).readers_known


def test_report__of_an_older_version_is_judged_when_it_is_shown() -> None:
    older = make_report(impact=impact(part("rows")))
    assert older.past_numbers is None
    assert read_past_numbers(older).models == ["stg.orders"]
    said = older.model_copy(update={"past_numbers": read_past_numbers(make_report(changes=[]))})
    assert read_past_numbers(said).models == []
