"""Readers outside of the project: who is named, with which words, and who is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from ci_bot.bot.decision import BotFacts
from ci_bot.bot.policy.exposures import PolicyExposure
from ci_bot.bot.policy.policy import Policy
from ci_bot.bot.policy.severity_overrides import PolicyWeighing
from ci_bot.protocol.plan import Change, ColumnChange
from ci_bot.protocol.review_inputs import ExposedModel
from ci_bot.protocol.review_report import (
    ChangedPart,
    Impact,
    IndirectModel,
    ReachedModel,
    ReviewFacts,
    Risk,
)
from tests.unit.decision.facts import changed, dropped, facts, judged

RULE = "exposure-affected"
MODEL = "stg.orders"
BELOW = "mart.revenue"


def exposure(*columns: str, model: str = MODEL, name: str = "Dashboard") -> PolicyExposure:
    """A reader of some columns; without any, of all."""
    return PolicyExposure(name, ("alice",), (), {model: columns or None})


def bot(*exposures: PolicyExposure) -> BotFacts:
    return BotFacts(weighing=PolicyWeighing(policy=Policy((), exposures)))


def plan(*changes: Change, impact: Impact | None = None, **more: Any) -> ReviewFacts:
    names = [ExposedModel(name=name, model=name) for name in (MODEL, BELOW)]
    return facts(changes=list(changes), impact=impact or Impact(), exposed=names, **more)


def part(column: str | None, how: str, *reached: ReachedModel, model: str = MODEL) -> ChangedPart:
    return ChangedPart.model_validate(
        {"model": model, "column": column, "how": how, "reached": list(reached)}
    )


def computed(*parts: ChangedPart, **more: Any) -> Impact:
    return Impact(changed=list(parts), **more)


def told(found: ReviewFacts, *exposures: PolicyExposure) -> list[tuple[str, str]]:
    """Weight and evidence of the findings of the rule."""
    return [(r.severity, r.evidence) for r in of_rule(found, *exposures)]


def of_rule(found: ReviewFacts, *exposures: PolicyExposure) -> list[Risk]:
    return [r for r in judged(bot(*exposures), **given(found)).risks if r.rule == RULE]


def given(found: ReviewFacts) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("changes", "impact", "exposed", "findings")}


RETYPED = ColumnChange(name="amount", before="INT", after="TEXT")


@pytest.mark.parametrize(
    ("columns", "how", "words"),
    [
        (("amount", "id"), "computed", "reads `amount`, `id`: `amount` has other values"),
        (("amount",), "dropped", "reads `amount`: `amount` goes away"),
        (("amount",), "retyped", "reads `amount`: `amount` gets another type"),
        ((), "computed", "reads all columns: `amount` has other values"),
    ],
)
def test_reader__of_a_changed_column__is_named(
    columns: tuple[str, ...], how: str, words: str
) -> None:
    found = plan(changed(), impact=computed(part("amount", how)))
    assert told(found, exposure(*columns)) == [("high", f"`Dashboard` of `@alice` {words}.")]


@pytest.mark.parametrize("how", ["computed", "dropped", "retyped", "added", "reordered"])
def test_reader__of_another_column__is_left_alone(how: str) -> None:
    found = plan(changed(), impact=computed(part("amount", how)))
    assert told(found, exposure("id")) == []


def test_reader__of_all_columns__is_asked_about_their_order_and_not_about_a_new_one() -> None:
    order = plan(changed(), impact=computed(part("amount", "reordered")))
    assert told(order, exposure()) == [
        ("medium", "`Dashboard` of `@alice` reads all columns: the columns change their order.")
    ]
    new = plan(changed(), impact=computed(part("amount", "added")))
    assert told(new, exposure()) == []


def test_rows__are_read_by_every_reader() -> None:
    found = plan(changed(), impact=computed(part(None, "rows")))
    nothing = PolicyExposure("Counter", (), ("a@b.example",), {MODEL: ()})
    assert told(found, exposure("id"), nothing) == [
        (
            "high",
            "`Counter` of `a@b.example` reads which rows there are: the model has other rows.",
        ),
        ("high", "`Dashboard` of `@alice` reads `id`: the model has other rows."),
    ]


def test_reader__of_which_rows_there_are__is_left_alone_by_values() -> None:
    found = plan(changed(), impact=computed(part("amount", "computed")))
    assert told(found, PolicyExposure("Counter", ("bob",), (), {MODEL: ()})) == []


def test_reader__of_a_model_further_down__is_named_for_what_reaches_it() -> None:
    reached = ReachedModel(model=BELOW, columns=["total"], rows=False)
    found = plan(
        changed(),
        changed(BELOW, change="indirect"),
        impact=computed(
            part("amount", "computed", reached),
            indirect=[IndirectModel(model=BELOW, reached="yes", why="Reads it.")],
        ),
    )
    assert told(found, exposure("total", model=BELOW)) == [
        ("high", "`Dashboard` of `@alice` reads `total`: `total` has other values.")
    ]
    assert told(found, exposure("id", model=BELOW)) == []


def test_reader__of_a_model_that_reads_nothing_of_the_change__is_left_alone() -> None:
    nothing = IndirectModel(model=BELOW, reached="no", why="Reads nothing that changed.")
    found = plan(
        changed(category="breaking"),
        changed(BELOW, change="indirect"),
        impact=computed(part("amount", "computed"), indirect=[nothing]),
    )
    assert told(found, exposure(model=BELOW)) == []


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "unknown"])
def test_what_cannot_be_known__is_a_note(cut: bool) -> None:
    maybe = IndirectModel(model=BELOW, reached="unknown", why="It is a Python model.")
    impact = computed(
        part("amount", "computed"),
        **({"more_changed": 1} if cut else {"indirect": [maybe]}),
    )
    found = plan(changed(), changed(BELOW, change="indirect"), impact=impact)
    assert told(found, exposure("total", model=BELOW)) == [
        (
            "medium",
            "`Dashboard` of `@alice` reads `total`: what of the model changes cannot be read from "
            "its code.",
        )
    ]


def test_breaking_change__that_nobody_has_followed__is_a_note() -> None:
    found = plan(changed(category="breaking"))
    assert [weight for weight, _ in told(found, exposure("id"))] == ["medium"]
    assert told(plan(changed(category="non_breaking")), exposure("id")) == []


def test_removed_model__names_its_readers_in_both_findings() -> None:
    found = plan(changed(change="removed"))
    assert told(found, exposure("id")) == [
        ("high", "`Dashboard` of `@alice` reads `id`: the model goes away.")
    ]
    (removed,) = [
        r
        for r in judged(bot(exposure("id")), **given(found)).risks
        if r.rule == "R04-model-removed"
    ]
    assert "outside of it, `Dashboard` reads it" in removed.evidence
    assert "not known" not in removed.evidence


@pytest.mark.parametrize(("columns", "known"), [(("total",), True), (("id",), False), ((), True)])
def test_dropped_column__says_whether_readers_outside_are_known(
    columns: tuple[str, ...], known: bool
) -> None:
    found = plan(changed(columns=[dropped("Total")]))
    (risk,) = [
        r
        for r in judged(bot(exposure(*columns)), **given(found)).risks
        if r.rule == "R04-column-dropped"
    ]
    assert ("outside of it, `Dashboard` reads it" in risk.evidence) is known
    assert ("readers outside are not known" in risk.evidence) is not known


def test_renamed_column__names_the_new_one() -> None:
    new = ColumnChange(name="total", before=None, after="STRING")
    found = plan(changed(columns=[dropped("amount"), new]))
    assert told(found, exposure("amount")) == [
        (
            "high",
            "`Dashboard` of `@alice` reads `amount`: `amount` goes away (`total` of the same type "
            "is new).",
        )
    ]


def test_retyped_column__names_both_types_and_wins_over_its_values() -> None:
    found = plan(
        changed(columns=[RETYPED]),
        impact=computed(part("amount", "computed"), part("amount", "retyped")),
    )
    assert told(found, exposure("amount")) == [
        (
            "high",
            "`Dashboard` of `@alice` reads `amount`: `amount` gets another type (`INT` to `TEXT`).",
        )
    ]


@pytest.mark.parametrize(
    "more", [{"from_base": True}, {"kind": "EXTERNAL"}], ids=["of the base branch", "declared"]
)
def test_change__that_is_not_of_the_pull_request__asks_nobody(more: dict[str, Any]) -> None:
    found = plan(changed(columns=[RETYPED], **more), impact=computed(part("amount", "retyped")))
    assert told(found, exposure("amount")) == []


def test_exposure__of_a_model_that_is_not_there__asks_nobody() -> None:
    found = plan(changed(), impact=computed(part("amount", "dropped")))
    unknown = [ExposedModel(name=MODEL, model=None)]
    assert told(found.model_copy(update={"exposed": unknown}), exposure("amount")) == []


def test_finding__is_about_a_model_and_a_reader() -> None:
    found = plan(changed(), impact=computed(part("amount", "dropped")))
    (risk,) = of_rule(found, exposure("amount"))
    assert (risk.model, risk.subject, risk.path) == (MODEL, "Dashboard", "models/stg/orders.sql")
    assert risk.clears_when.startswith("the owner of each reader has agreed")


def test_names__cannot_leave_their_code_marks() -> None:
    found = plan(changed(), impact=computed(part("amount", "dropped")))
    (risk,) = of_rule(found, exposure("amount", name="a` @org/team <img> `b"))
    assert risk.evidence.count("`") == 8
    assert risk.evidence.startswith("`a' @org/team <img> 'b` of ")
