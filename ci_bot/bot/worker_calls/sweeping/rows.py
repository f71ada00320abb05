"""How each environment stands that a sweep has found, and why it is still there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ci_bot.bot.github.port import PullState
from ci_bot.contracts.documents.cleanup import CleanupDocument
from ci_bot.contracts.documents.sweep import FoundEnvironment, Standing, SweepRow
from ci_bot.contracts.environment import number_of, prefix_in
from ci_bot.contracts.messages import ReclaimChoice

AskStates = Callable[[Collection[int]], Mapping[int, PullState]]

_MISSED = (
    "its cleanup never ran: a merge conflict at closing time, a cancelled or failed run, a `paths` "
    "filter, or no close workflow on the default branch"
)
_CAUSES = {
    "applying": "an apply was running, or had died, when the pull request closed",
    "applied": _MISSED,
    "probed": _MISSED,
    "failed": _MISSED,
    "cleaning": "its cleanup was cut off in the middle: a cancelled run, or Spark or the state "
    "went away",
    "leftover": "its cleanup could not remove everything",
}


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """What to sweep.

    Args:
        owner: The repository, as the ledger records it.
        max_deletions: The most environments that one sweep removes, or reclaims the tables of.
        dry_run: Say what would be removed, and remove nothing.
        run: The run that asks, for the ledger.
    """

    owner: str
    environment_prefix: str = "pr"
    reclaim: ReclaimChoice = "auto"
    max_deletions: int = 20
    dry_run: bool = False
    run: str | None = None


@dataclass(frozen=True, kw_only=True)
class SweptEnvironment:
    """One environment, why it is treated as it is, and what came of it.

    Args:
        number: The pull request that the name says; None where the name says none.
        document: The cleanup's own document; None where none was made.
        waits: Why it is still there although it should go; None where it is gone or may stay.
    """

    found: FoundEnvironment
    number: int | None
    standing: Standing
    merged: bool | None = None
    document: CleanupDocument | None = None
    waits: str | None = None

    @property
    def environment(self) -> str:
        return self.found.environment

    @property
    def cause(self) -> str | None:
        """Why it was still there, as far as its record tells; None where it belongs there."""
        if not self.rescue:
            return None
        return _CAUSES.get(self.found.phase or "", _MISSED)

    @property
    def rescue(self) -> bool:
        """Whether a cleanup missed it."""
        return self.standing == "remove"

    @property
    def goes(self) -> bool:
        """Whether the sweep removes something of it."""
        return self.standing in ("remove", "tables")

    @property
    def gone(self) -> bool:
        return self.document is not None and self.document.result in ("removed", "nothing_to_do")

    @property
    def left(self) -> bool:
        """Whether it should be gone and is not."""
        return self.goes and not self.gone

    def report(self) -> SweepRow:
        """The row as people and the step's output get it."""
        return SweepRow(
            environment=self.environment,
            pr_number=self.number,
            standing=self.standing,
            merged=self.merged,
            cause=self.cause,
            result=self.document.result if self.document else None,
            waits=self.waits[:4_000] if self.waits else None,
            expires_at=self.found.expires_at,
            **self._tables(),
        )

    def _tables(self) -> dict[str, Any]:
        document = self.document
        if document is None:
            return {"tables_until": self.found.tables_due_at}
        return {
            "views_dropped": len(document.views_dropped),
            "tables_reclaimed": len(document.tables_reclaimed),
            "bytes_reclaimed": document.bytes_reclaimed,
            "tables_kept": len(document.tables_kept),
            # ISO 8601 with or without a fraction sorts well enough for a whole second.
            "tables_until": max(
                (kept.until for kept in document.tables_kept if kept.until), default=None
            ),
        }


def sort_out(
    found: Iterable[FoundEnvironment], options: SweepOptions, ask_states: AskStates
) -> list[SweptEnvironment]:
    """How each environment stands. GitHub is asked once, and only about what may be removed."""
    rows = [_by_itself(item, options) for item in found]
    asked = [row for row in rows if row.goes or row.standing == "other_prefix"]
    numbers = {row.number for row in asked if row.number is not None}
    states = ask_states(numbers) if numbers else {}
    return [_by_state(row, states) for row in rows]


def _by_itself(found: FoundEnvironment, options: SweepOptions) -> SweptEnvironment:
    """`remove` and `tables` here mean: to be asked about."""
    number = number_of(found.environment, options.environment_prefix)
    standing: Standing = "remove"
    recorded = found.pr_number or 0
    if number is None and found.owner is not None and prefix_in(found.environment, recorded):
        standing, number = "other_prefix", recorded
    elif number is None:
        standing = "odd_record"
    elif found.owner is None:
        standing = "not_recorded"
    elif found.pr_number is not None and found.pr_number != number:
        standing = "odd_record"
    elif found.pinned:
        standing = "pinned"
    elif found.tables_due_at is not None:
        standing = "tables" if found.tables_due else "grace"
    return SweptEnvironment(found=found, number=number, standing=standing)


def _by_state(row: SweptEnvironment, states: Mapping[int, PullState]) -> SweptEnvironment:
    if not (row.goes or row.standing == "other_prefix") or row.number is None:
        return row
    state = states.get(row.number, PullState(state="unknown"))
    if state.state == "closed":
        return replace(row, merged=state.merged)
    return replace(row, standing=state.state)
