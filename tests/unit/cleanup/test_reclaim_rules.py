"""Which physical tables go, over every way in which somebody else may need them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_bot.worker.cleanup import reclaim_rules
from ci_bot.worker.cleanup.reclaim_rules import (
    ReclaimSnapshotFact,
    ReclaimSnapshotUse,
    ReclaimStateRow,
    ReclaimTableFacts,
    ReclaimTableFate,
    ReclaimTableNames,
)
from ci_bot.worker.state_store.ledger import LedgerObject, LedgerRow, LedgerSnapshot

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


def stored(identifier: str = "7", **changes: Any) -> ReclaimStateRow:
    facts: dict[str, Any] = {
        "name": "revenue",
        "identifier": identifier,
        "version": "7",
        "dev_version": "8",
        "updated": PUSHED,
        "expires": TTL_ENDS,
    }
    return ReclaimStateRow(**facts | changes)


def use(*, reads_preview: bool = True, **changes: str) -> ReclaimSnapshotUse:
    facts = {"name": "revenue", "identifier": "7", "version": "7", "dev_version": "8"}
    return ReclaimSnapshotUse(**facts | changes, reads_preview=reads_preview)


def prods(**changes: str) -> ReclaimSnapshotUse:
    """Prod never reads a preview."""
    return use(reads_preview=False, **changes)


def names(item: ReclaimSnapshotFact) -> ReclaimTableNames:
    stem = f"p.{item.name}"
    return ReclaimTableNames(f"{stem}__{item.version}", f"{stem}__{item.dev_version}__dev")


def facts(*rows: ReclaimStateRow, **changes: Any) -> ReclaimTableFacts:
    found = rows or (stored(),)
    given_facts: dict[str, Any] = {
        "recorded": (TABLE, PREVIEW),
        "rows": found,
        "names": {item.snapshot_key: names(item) for item in found},
    }
    return ReclaimTableFacts(**given_facts | changes)


def decide(known: ReclaimTableFacts, ledger: LedgerRow | None = None) -> ReclaimTableFate:
    return reclaim_rules.decide_which_tables_to_reclaim(ledger or row(), known, CLEANED)


def why(decision: ReclaimTableFate) -> dict[str, str]:
    return {item.table: item.why for item in decision.keep}


def test_decide__what_is_ours_and_nobody_uses_goes() -> None:
    decision = decide(facts())
    assert decision.forget == {("revenue", "7"): "version"}
    assert decision.drop == [TABLE, PREVIEW]
    assert decision.keep == []


@pytest.mark.parametrize("who", ["pr_2", "dev"])
def test_decide__what_an_environment_uses_stays(who: str) -> None:
    decision = decide(facts(references={who: [use()]}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == {TABLE: f"{who} uses its version", PREVIEW: f"{who} reads it"}
    assert {item.until for item in decision.keep} == {None}, "no TTL takes what is in use"


def test_decide__a_snapshot_that_prod_has_by_now_stays_with_its_preview() -> None:
    # The preview could go, but only the row says that it is there.
    decision = decide(facts(references={"prod": [prods()]}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == {TABLE: "prod uses its version", PREVIEW: reclaim_rules.IN_USE}


def test_decide__a_version_that_another_snapshot_of_prod_shares_stays_without_our_preview() -> None:
    # A metadata change on top of ours: another snapshot id, another preview, the same table.
    decision = decide(facts(references={"prod": [prods(identifier="9", dev_version="9")]}))
    assert decision.forget == {("revenue", "7"): "preview"}
    assert decision.drop == [PREVIEW]
    assert why(decision) == {TABLE: "prod uses its version"}


def readers(*more: ReclaimStateRow, **changes: Any) -> ReclaimTableFacts:
    """The reader of a changed model: a snapshot of its own, and both versions are prod's."""
    in_state = (stored(), stored("1"), *more)
    references = {"prod": [prods(identifier="1")], **changes.pop("references", {})}
    return facts(*in_state, references=references, **changes)


def test_decide__the_preview_of_a_reader_goes_although_its_dev_version_is_prods() -> None:
    decision = decide(readers(used={TABLE: "prod"}))
    assert decision.forget == {("revenue", "7"): "preview"}
    assert decision.drop == [PREVIEW]
    assert why(decision) == {TABLE: "prod uses its version"}


def test_decide__the_preview_of_a_reader_stays_for_whoever_reads_it() -> None:
    other = use(identifier="2")
    decision = decide(readers(stored("2"), references={"pr_2": [other]}))
    assert decision.forget == {("revenue", "7"): "row"}, "others share both, and what is known"
    assert decision.drop == []
    assert why(decision)[PREVIEW] == "pr_2 reads it"


def test_decide__the_preview_of_a_reader_goes_where_others_read_prods_table() -> None:
    # A change of a description: the snapshot is new, and reads what prod reads.
    metadata = use(identifier="2", reads_preview=False)
    # And an environment that has prod's own snapshot, without a change.
    unchanged = use(identifier="1", reads_preview=False)
    known = readers(stored("2"), references={"pr_2": [metadata], "dev": [unchanged]})
    decision = decide(known)
    assert decision.forget == {("revenue", "7"): "preview"}
    assert decision.drop == [PREVIEW]


def test_decide__the_preview_of_a_reader_stays_while_somebody_may_come_back_to_it() -> None:
    # Nobody uses it now. A plan that was made with it would not push it again.
    decision = decide(readers(stored("2")))
    assert decision.drop == []
    assert why(decision)[PREVIEW] == reclaim_rules.SHARED
    assert [item.until for item in decision.keep] == [None, None], "prod's snapshot shares it"


def test_decide__a_preview_that_another_environment_shares_keeps_the_snapshot() -> None:
    decision = decide(facts(references={"pr_2": [use(identifier="9", version="9")]}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == {TABLE: reclaim_rules.SHARED, PREVIEW: "pr_2 reads it"}


def test_decide__a_table_that_an_environment_names_stays_whatever_its_version() -> None:
    decision = decide(facts(used={TABLE: "prod"}))
    assert decision.drop == [PREVIEW]
    assert why(decision) == {TABLE: "prod uses it"}


def test_decide__what_was_pushed_again_stays_until_its_ttl() -> None:
    decision = decide(facts(stored(updated=CLEANED + 1)))
    assert decision.forget == {}
    assert why(decision) == {TABLE: reclaim_rules.PUSHED_AGAIN, PREVIEW: reclaim_rules.PUSHED_AGAIN}
    assert {item.until for item in decision.keep} == {TTL_ENDS}


def test_decide__what_was_pushed_until_the_removal_began_is_still_ours() -> None:
    assert decide(facts(stored(updated=CLEANED))).drop == [TABLE, PREVIEW]


def test_decide__a_snapshot_whose_tables_are_not_known_keeps_its_row_and_what_it_may_own() -> None:
    # Without its row in the state nothing would ever say again which tables are its own.
    decision = decide(facts(names={}))
    assert decision.forget == {}
    assert decision.drop == []
    assert why(decision) == {TABLE: reclaim_rules.SHARED, PREVIEW: reclaim_rules.SHARED}


def test_decide__a_preview_stays_for_its_reader_though_the_ledger_knows_it_by_another_version() -> (
    None
):
    # Ours was pushed again, and its preview is the one that another environment reads by now.
    again = stored(dev_version="9")
    known = facts(
        again,
        recorded=("p.revenue__9__dev",),
        references={"dev": [use(identifier="1", dev_version="9")]},
    )
    decision = decide(known)
    assert decision.drop == []
    assert why(decision) == {"p.revenue__9__dev": "dev reads it"}


def test_decide__what_another_environment_made_first_stays() -> None:
    not_ours = REVENUE.model_copy(update={"ours": False})
    decision = decide(facts(), row(not_ours))
    assert decision.forget == {}
    assert decision.drop == []
    assert {item.until for item in decision.keep} == {TTL_ENDS}


def test_decide__a_row_that_somebody_else_left_shares_what_it_shares() -> None:
    # Not used by any environment now, but its TTL runs: somebody may come back to it.
    decision = decide(facts(stored(), stored("9", dev_version="9", expires=TTL_ENDS + 5)))
    assert decision.forget == {("revenue", "7"): "preview"}
    assert decision.drop == [PREVIEW]
    assert [(item.why, item.until) for item in decision.keep] == [
        (reclaim_rules.SHARED, TTL_ENDS + 5)
    ]


def test_decide__a_table_that_was_there_before_is_not_even_asked_about() -> None:
    decision = decide(facts(recorded=(PREVIEW,)))
    assert decision.drop == [PREVIEW]
    assert decision.keep == []


def test_decide__without_rows_in_the_state_the_names_tell() -> None:
    known = ReclaimTableFacts(recorded=(TABLE, PREVIEW, "p.hash_of_something"))
    decision = decide(known)
    assert decision.drop == [TABLE, PREVIEW]
    assert why(decision) == {"p.hash_of_something": reclaim_rules.NOT_OURS}


SNAPSHOTS = st.builds(
    ReclaimSnapshotFact,
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
    in_prod=st.lists(SNAPSHOTS, max_size=4),
    used=st.lists(st.tuples(SNAPSHOTS, st.booleans()), max_size=4),
)
def test_decide__nothing_that_anybody_else_needs_ever_goes(
    mine: list[tuple[ReclaimSnapshotFact, bool]],
    rows: list[tuple[ReclaimSnapshotFact, int]],
    in_prod: list[ReclaimSnapshotFact],
    used: list[tuple[ReclaimSnapshotFact, bool]],
) -> None:
    ledger = [
        LedgerSnapshot(**vars(item) | {"ours": ours})
        for item, ours in {item.snapshot_key: (item, ours) for item, ours in mine}.values()
    ]
    in_state = [
        ReclaimStateRow(**vars(item), updated=updated, expires=TTL_ENDS)
        for item, updated in {item.snapshot_key: (item, at) for item, at in rows}.values()
    ]

    known = ReclaimTableFacts(
        recorded=sorted({f"p.{n}__{v}{d}" for n in "ab" for v in "123" for d in ("", "__dev")}),
        rows=in_state,
        names={item.snapshot_key: names(item) for item in in_state},
        references={
            "prod": [ReclaimSnapshotUse(**vars(item), reads_preview=False) for item in in_prod],
            "dev": [ReclaimSnapshotUse(**vars(item), reads_preview=reads) for item, reads in used],
        },
    )
    decision = reclaim_rules.decide_which_tables_to_reclaim(
        row().model_copy(update={"snapshots": ledger}), known, CLEANED
    )

    ours = {(item.name, item.identifier) for item in ledger if item.ours}
    in_use = [*in_prod, *(item for item, _ in used)]
    assert decision.forget.keys() <= ours - {item.snapshot_key for item in in_use}
    survivors = [item for item in in_state if item.snapshot_key not in decision.forget]
    elsewhere = {item.snapshot_key for item in in_use} - ours
    needed = {names(item).table for item in [*in_use, *survivors]}
    needed |= {names(item).preview for item, reads in used if reads}
    # Of a snapshot that is in use it is known what is read; of all others it is not.
    needed |= {names(item).preview for item in survivors if item.snapshot_key not in elsewhere}
    assert needed.isdisjoint(decision.drop)
    assert {item.snapshot_key for item in in_state if item.updated > CLEANED}.isdisjoint(
        decision.forget
    )
    assert sorted([*decision.drop, *(item.table for item in decision.keep)]) == known.recorded
    for key, part in decision.forget.items():
        forgotten = next(item for item in in_state if item.snapshot_key == key)
        shared = any(item.table_key == forgotten.table_key for item in [*in_use, *survivors])
        assert (part != "version") is shared
        if part == "preview":
            # What is known of a preview goes only with the preview.
            assert names(forgotten).preview not in needed
        if part == "version":
            read = {item.preview_key for item, reads in used if reads}
            assert forgotten.preview_key not in read, "what is known of it would go along"


def test_claimed__only_where_a_row_came_back() -> None:
    known = ReclaimTableFacts(recorded=())
    assert reclaim_rules.find_claim_on_reclaimed_table(TABLE, row(), known) is None
    assert (
        reclaim_rules.find_claim_on_reclaimed_table(
            TABLE, row(), facts(stored("9", dev_version="9"))
        )
        == reclaim_rules.PUSHED_AGAIN
    )
    assert (
        reclaim_rules.find_claim_on_reclaimed_table(
            PREVIEW, row(), facts(stored("9", dev_version="9"), names={})
        )
        is None
    )
    assert (
        reclaim_rules.find_claim_on_reclaimed_table("p.hash", row(), facts(stored("9"), names={}))
        == reclaim_rules.PUSHED_AGAIN
    )


def test_claimed__is_no_preview_by_a_row_that_reads_the_other_table() -> None:
    # It was there when it was decided, too: prod's own snapshot has the preview's name.
    known = readers(rows=(stored("1"),), names={})
    assert reclaim_rules.find_claim_on_reclaimed_table(PREVIEW, row(), known) is None
    assert (
        reclaim_rules.find_claim_on_reclaimed_table(TABLE, row(), known) == "prod uses its version"
    )
    pushed = readers(rows=(stored("1"), stored("2")), names={})
    assert (
        reclaim_rules.find_claim_on_reclaimed_table(PREVIEW, row(), pushed)
        == reclaim_rules.PUSHED_AGAIN
    )


def test_is_preview__tells_the_two_tables_of_a_snapshot_apart() -> None:
    assert reclaim_rules.is_reclaimed_preview(PREVIEW, row(), facts())
    assert not reclaim_rules.is_reclaimed_preview(TABLE, row(), facts())
    assert not reclaim_rules.is_reclaimed_preview(
        "p.hash_of_something", row(), ReclaimTableFacts(recorded=())
    )


def recorded(*tables: str, existed: bool) -> list[LedgerObject]:
    return [
        LedgerObject(
            kind="table", catalog="c", db="p", name=table.removeprefix("p."), existed=existed
        )
        for table in tables
    ]


def test_inherited__who_uses_what_stays_is_its_maker_from_now_on() -> None:
    maker = row(objects=recorded(TABLE, PREVIEW, existed=False))
    own = REVENUE.model_copy(update={"identifier": "2"})
    shared = REVENUE.model_copy(update={"ours": False})
    view = recorded(PREVIEW, existed=True)[0].model_copy(update={"kind": "view"})
    objects = [*recorded(TABLE, PREVIEW, existed=True), view]
    heir = row(own, shared, environment="pr_2", objects=objects)

    found = reclaim_rules.inherit_tables_of_removed_environment(heir, maker, {PREVIEW})

    assert found is not None
    assert [(item.kind, item.name, item.existed) for item in found.objects] == [
        ("table", TABLE.removeprefix("p."), True),
        ("table", PREVIEW.removeprefix("p."), False),
        ("view", PREVIEW.removeprefix("p."), True),
    ]
    assert [item.ours for item in found.snapshots] == [True, True]
    assert found.updated_at == heir.updated_at, "it is older than what the heir has done"
    assert reclaim_rules.inherit_tables_of_removed_environment(found, maker, {PREVIEW}) is None
    assert (
        reclaim_rules.inherit_tables_of_removed_environment(
            row(own, environment="pr_3"), maker, {PREVIEW}
        )
        is None
    )
