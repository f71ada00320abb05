"""Physical tables in a sweep and in what people read: due ones go, and everything says how much."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ci_bot.bot.github.port import PullState
from ci_bot.bot.report.markdown.comments import render_cleanup_comment, render_sweep_markdown
from ci_bot.bot.worker_client import cleanup
from ci_bot.protocol.cleanup_report import (
    FoundEnvironment,
    KeptTable,
    ReclaimedTable,
    SweepReport,
    SweepRow,
)
from tests.factories import make_cleanup, make_context, on_terminal
from tests.unit.worker_client.test_sweep_activity import CLOSED, OPEN, Worker, answers, found, run

LATER = "2026-08-03T10:00:00Z"
RECLAIMED = make_cleanup(
    existed=False,
    state_record_removed=False,
    views_dropped=[],
    schemas_dropped=[],
    tables_reclaimed=[
        ReclaimedTable(table="sqlmesh__shop.shop__revenue__1", bytes=1_500_000),
        ReclaimedTable(table="sqlmesh__shop.shop__revenue__2__dev", bytes=500_000),
    ],
    tables_kept=[KeptTable(table="sqlmesh__shop.shop__orders__3", why="prod uses it", until=None)],
)


def removed(number: int, *, due: bool = True, **changes: Any) -> FoundEnvironment:
    facts: dict[str, Any] = {
        "phase": "reclaimable",
        "tables_due_at": LATER,
        "tables_due": due,
    }
    return found(number, **facts | changes)


def reclaim(name: str) -> Any:
    return RECLAIMED.model_copy(update={"environment": name})


def test_sweep__reclaims_what_is_due_and_closed_and_asks_about_nothing_else() -> None:
    worker = Worker(
        [
            removed(1),
            removed(2),
            removed(3),
            removed(4, due=False),
            removed(5, owner="octo/other"),
            removed(6, pinned=True),
        ],
        clean=reclaim,
    )
    asked: list[Collection[int]] = []

    def states(numbers: Collection[int]) -> Mapping[int, PullState]:
        asked.append(sorted(numbers))
        return {1: CLOSED, 2: OPEN, 3: PullState(state="unknown")}

    heard: list[str] = []
    swept = run(worker, states, heard)
    assert worker.removed == ["pr_1"]
    assert asked == [[1, 2, 3]]
    assert heard == [], "its cleanup did run, so nothing was rescued"
    assert swept.missed_environments == ()
    assert {row.environment: row.standing for row in swept.rows} == {
        "pr_1": "tables",
        "pr_2": "open",
        "pr_3": "unknown",
        "pr_4": "grace",
        "pr_6": "pinned",
    }
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 0


def test_sweep__removes_environments_before_it_reclaims_tables() -> None:
    old = "2026-01-01T00:00:00Z"
    worker = Worker([removed(1, updated_at=old), found(2)], clean=reclaim)
    swept = run(worker, answers(_1=CLOSED, _2=CLOSED), max_deletions=1)
    assert worker.removed == ["pr_2"]
    assert [row.environment for row in swept.leftover_environments] == ["pr_1"]
    assert cleanup.choose_exit_code_of_worker_sweep(swept) == 4


def report(**changes: Any) -> SweepReport:
    row = SweepRow(environment="pr_1", pr_number=1, standing="tables", tables_until=LATER)
    return SweepReport(
        dry_run=changes.pop("dry_run", False), rows=[row.model_copy(update=changes)], others=0
    )


def test_report__counts_tables_and_bytes() -> None:
    swept = run(Worker([removed(1)], clean=reclaim), answers(_1=CLOSED))
    (row,) = swept.make_report().rows
    assert (row.tables_reclaimed, row.bytes_reclaimed, row.tables_kept) == (2, 2_000_000, 1)
    text = render_sweep_markdown(swept.make_report(), make_context(marker=None))
    assert "2 tables reclaimed, 1 kept" in text
    assert "| 2.0 MB |" in text
    assert re.search(
        r"pr_1 .* 2 tables reclaimed, 1 kept +2.0 MB", on_terminal(swept.make_report())
    )


def test_report__of_a_size_that_is_not_known_says_so() -> None:
    known = report(result="removed", tables_reclaimed=1, bytes_reclaimed=None)
    assert "| unknown |" in render_sweep_markdown(known, make_context(marker=None))


def test_report__of_a_dry_run_names_them() -> None:
    planned = report(dry_run=True)
    text = render_sweep_markdown(planned, make_context(marker=None))
    assert "0 environments would be removed, tables of 1 reclaimed" in text
    assert "would be reclaimed" in text
    assert re.search(r"pr_1 .* would be reclaimed", on_terminal(planned))


def test_report__says_until_when_the_others_stay() -> None:
    waiting = report(standing="grace")
    text = render_sweep_markdown(waiting, make_context(marker=None))
    assert "removed already; its physical tables stay until 2026-08-03 10:00 UTC" in text
    assert "nothing was left behind" in text


def test_report__of_what_could_not_be_reclaimed_is_a_warning() -> None:
    stuck = report(result="incomplete", waits="1 object is left of pr_1.")
    text = render_sweep_markdown(stuck, make_context(marker=None))
    assert "⚠️ Sweep: 1 of 1 environment could not be removed" in text
    assert "1 object is left of `pr_1`." in text


def test_tombstone__of_tables_that_went_later() -> None:
    text = render_cleanup_comment(RECLAIMED, make_context(phase="closed")).text
    assert "## 🧹 `pr_142` is removed, its physical tables too · " in text
    assert "**Nothing is left**, checked with Spark after the drop: " in text
    assert "2.0 MB freed" in text
    assert "sqlmesh__shop.shop__revenue__2__dev" in text
    assert ": prod uses it." in text
    assert "2 tables reclaimed" in text


def test_terminal__shows_each_table_with_its_size() -> None:
    text = on_terminal(RECLAIMED)
    assert re.search(r"2\s+tables\s+reclaimed,\s+2.0\s+MB\s+freed", text)
    assert re.search(r"sqlmesh__shop.shop__revenue__1 +1.5 MB", text)
    assert re.search(r"sqlmesh__shop.shop__orders__3 +prod uses it", text)
    unknown = [ReclaimedTable(table="a.b", bytes=None)]
    text = on_terminal(RECLAIMED.model_copy(update={"tables_reclaimed": unknown}))
    assert re.search(r"a.b +unknown", text)
    assert "freed" not in text
