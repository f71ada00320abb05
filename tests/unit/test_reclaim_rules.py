"""Which physical tables go, over every way in which somebody else may need them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker import reclaim_rules as rules
from ci_bot.worker.ledger import LedgerRow, LedgerSnapshot
from ci_bot.worker.reclaim_rules import Decision, Facts, SnapshotFact, StateRow, TableNames

PUSHED = 1_000
CLEANED = 2_000
TTL_ENDS = 9_000
REVENUE = LedgerSnapshot(name="revenue", identifier="7", version="7", dev_version="8", ours=True)
TABLE, PREVIEW = "p.revenue__7", "p.revenue__8__dev"


def row(*snapshots: LedgerSnapshot, **changes: Any) -> LedgerRow:
    facts: dict[str, Any] = {
        "environment": "pr_1",
        "owner": "octo/shop",
        "pr_number": 1,
        "head_sha": None,
        "plan_id": None,
        "phase": "reclaimable",
        "gateway": "spark",
        "catalog": "spark_catalog",
        "suffix_target": "schema",
        "snapshots": list(snapshots) or [REVENUE],
        "created_at": "2024-01-01T00:00:00Z",
        "updated_at": "2024-01-01T00:00:00Z",
    }
    return LedgerRow(**facts | changes)


def stored(identifier: str = "7", **changes: Any) -> StateRow:
    facts: dict[str, Any] = {
        "name": "revenue",
        "identifier": identifier,
        "version": "7",
        "dev_version": "8",
        "updated": PUSHED,
        "expires": TTL_ENDS,
    }
    return StateRow(**facts | changes)


def fact(**changes: str) -> SnapshotFact:
    facts = {"name": "revenue", "identifier": "7", "version": "7", "dev_version": "8"}
    return SnapshotFact(**facts | changes)


def names(item: SnapshotFact) -> TableNames:
    stem = f"p.{item.name}"
    return TableNames(f"{stem}__{item.version}", f"{stem}__{item.dev_version}__dev")


def facts(*rows: StateRow, **changes: Any) -> Facts:
    found = rows or (stored(),)
    given_facts: dict[str, Any] = {
        "recorded": (TABLE, PREVIEW),
        "rows": found,
        "names": {item.key: names(item) for item in found},
    }
    return Facts(**given_facts | changes)


def decide(known: Facts, ledger: LedgerRow | None = None) -> Decision:
    return rules.decide(ledger or row(), known, CLEANED)


def why(decision: Decision) -> dict[str, str]:
    return {item.table: item.why for item in decision.keep}


def test_decide__what_is_ours_and_nobody_uses_goes() -> None:
    decision = decide(facts())
    assert decision.forget == {("revenue", "7"): True}
    assert decision.drop == [TABLE, PREVIEW]
    assert decision.keep == []


@pytest.mark.parametrize("who", ["prod", "pr_2", "dev"])
def test_decide__what_an_environment_uses_stays(who: str) -> None:
    decision = decide(facts(references={who: [fact()]}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == dict.fromkeys((TABLE, PREVIEW), f"{who} uses its version")


def test_decide__a_version_that_another_snapshot_of_prod_shares_stays_without_our_preview() -> None:
    # A metadata change on top of ours: another snapshot id, another preview, the same table.
    decision = decide(facts(references={"prod": [fact(identifier="9", dev_version="9")]}))
    assert decision.forget == {("revenue", "7"): False}
    assert decision.drop == [PREVIEW]
    assert why(decision) == {TABLE: "prod uses its version"}


def test_decide__a_preview_that_another_environment_shares_keeps_the_snapshot() -> None:
    decision = decide(facts(references={"pr_2": [fact(identifier="9", version="9")]}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == {TABLE: rules.SHARED, PREVIEW: "pr_2 uses its version"}


def test_decide__a_table_that_an_environment_names_stays_whatever_its_version() -> None:
    decision = decide(facts(used={TABLE: "prod"}))
    assert decision.drop == [PREVIEW]
    assert why(decision) == {TABLE: "prod uses its version"}
    assert decision.keep[0].until is None, "no TTL takes what is in use"


def test_decide__what_was_pushed_again_stays_until_its_ttl() -> None:
    decision = decide(facts(stored(updated=CLEANED + 1)))
    assert decision.forget == {}
    assert why(decision) == {TABLE: rules.PUSHED_AGAIN, PREVIEW: rules.PUSHED_AGAIN}
    assert {item.until for item in decision.keep} == {TTL_ENDS}


def test_decide__what_another_environment_made_first_stays() -> None:
    not_ours = REVENUE.model_copy(update={"ours": False})
    decision = decide(facts(), row(not_ours))
    assert decision.forget == {}
    assert decision.drop == []
    assert {item.until for item in decision.keep} == {TTL_ENDS}


def test_decide__a_row_that_somebody_else_left_shares_what_it_shares() -> None:
    # Not used by any environment now, but its TTL runs: somebody may come back to it.
    decision = decide(facts(stored(), stored("9", dev_version="9", expires=TTL_ENDS + 5)))
    assert decision.forget == {("revenue", "7"): False}
    assert decision.drop == [PREVIEW]
    assert [(item.why, item.until) for item in decision.keep] == [(rules.SHARED, TTL_ENDS + 5)]


def test_decide__a_table_that_was_there_before_is_not_even_asked_about() -> None:
    decision = decide(facts(recorded=(PREVIEW,)))
    assert decision.drop == [PREVIEW]
    assert decision.keep == []


def test_decide__without_rows_in_the_state_the_names_tell() -> None:
    known = Facts(recorded=(TABLE, PREVIEW, "p.hash_of_something"))
    decision = decide(known)
    assert decision.drop == [TABLE, PREVIEW]
    assert why(decision) == {"p.hash_of_something": rules.NOT_OURS}


SNAPSHOTS = st.builds(
    SnapshotFact,
    name=st.sampled_from(["a", "b"]),
    identifier=st.sampled_from("1234"),
    version=st.sampled_from("12"),
    dev_version=st.sampled_from("123"),
)


@given(
    mine=st.lists(st.tuples(SNAPSHOTS, st.booleans()), max_size=4),
    rows=st.lists(
        st.tuples(SNAPSHOTS, st.sampled_from([PUSHED, CLEANED, CLEANED + 1])), max_size=6
    ),
    used=st.lists(SNAPSHOTS, max_size=4),
)
def test_decide__nothing_that_anybody_else_needs_ever_goes(
    mine: list[tuple[SnapshotFact, bool]],
    rows: list[tuple[SnapshotFact, int]],
    used: list[SnapshotFact],
) -> None:
    ledger = [
        LedgerSnapshot(**vars(item) | {"ours": ours})
        for item, ours in {item.key: (item, ours) for item, ours in mine}.values()
    ]
    in_state = [
        StateRow(**vars(item), updated=updated, expires=TTL_ENDS)
        for item, updated in {item.key: (item, at) for item, at in rows}.values()
    ]

    known = Facts(
        recorded=sorted({f"p.{n}__{v}{d}" for n in "ab" for v in "123" for d in ("", "__dev")}),
        rows=in_state,
        names={item.key: names(item) for item in in_state},
        references={"prod": used},
    )
    decision = rules.decide(row().model_copy(update={"snapshots": ledger}), known, CLEANED)

    ours = {(item.name, item.identifier) for item in ledger if item.ours}
    assert decision.forget.keys() <= ours - {item.key for item in used}
    survivors = [item for item in in_state if item.key not in decision.forget]
    needed = {
        name for item in [*used, *survivors] for name in (names(item).table, names(item).preview)
    }
    assert needed.isdisjoint(decision.drop)
    assert {item.key for item in in_state if item.updated > CLEANED}.isdisjoint(decision.forget)
    assert sorted([*decision.drop, *(item.table for item in decision.keep)]) == known.recorded
    for key, whole in decision.forget.items():
        forgotten = next(item for item in in_state if item.key == key)
        shared = any(item.table == forgotten.table for item in [*used, *survivors])
        assert whole is not shared


def test_claimed__only_where_a_row_came_back() -> None:
    known = Facts(recorded=())
    assert rules.claimed(TABLE, row(), known) is None
    assert rules.claimed(TABLE, row(), facts(stored("9", dev_version="9"))) == rules.PUSHED_AGAIN
    assert rules.claimed(PREVIEW, row(), facts(stored("9", dev_version="9"), names={})) is None
    assert rules.claimed("p.hash", row(), facts(stored("9"), names={})) == rules.PUSHED_AGAIN
