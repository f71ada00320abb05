"""The physical tables of an environment that a cleanup has removed: kept, kept for a day, or gone.

Keeping them asks nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ci_bot.contracts.documents.cleanup import KeptTable, Leftover, ReclaimedTable
from ci_bot.contracts.messages import CleanupRequest
from ci_bot.worker.cleanup import reclaim
from ci_bot.worker.records.ledger import Ledger, LedgerPhase, LedgerRow
from ci_bot.worker.warehouse.catalog import AdapterFiles, Catalog
from ci_bot.worker.words import times

# When that is stands in `until`; nowhere, where an environment uses a snapshot that shares it.
# One table or several: the sentences fit both.
_JANITOR = "removed by SQLMesh's janitor with the last snapshot that shares the data"


class Tables:
    """What becomes of them, and of the ledger's row, which lives as long as something is to come.

    `reclaimed`, `kept` and `leftovers` say it.
    """

    def __init__(
        self,
        request: CleanupRequest,
        context: Any,
        ledger: Ledger,
        catalog: Catalog,
        progress: Callable[[str, str, int | None, int | None], None],
    ) -> None:
        self._ask = request
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._progress = progress
        self.reclaimed: list[ReclaimedTable] = []
        self.kept: list[KeptTable] = []
        self.leftovers: list[Leftover] = []

    def before(self, row: LedgerRow) -> LedgerRow:
        """The row as the cleanup has to go on with it; call it before anything is changed."""
        if self._mode(row) != "never":
            row = reclaim.disowned(row, self._context)
        # One that was cut off stays known as such, whatever becomes of this cleanup.
        known = row.phase in ("applying", "cleaning", "leftover")
        return row if known else reclaim.without_schemas(row)

    def asks_spark(self, row: LedgerRow) -> bool:
        """Whether `settle` may have to ask Spark."""
        return self._mode(row) == "now"

    def settle(self, row: LedgerRow, *, complete: bool) -> None:
        """Once the environment is gone. Where something of it is left, its views may still read the
        tables, and the next run comes by here again."""
        if not complete:
            why = "the cleanup is not complete"
            self._keep(row, why, why)
            return
        mode = self._mode(row)
        if mode == "now":
            self._reclaim(record(self._ledger, row, "reclaimable"))
        elif mode == "later":
            self._wait(record(self._ledger, row, "reclaimable"))
        else:
            self._leave(row)

    def settle_later(self, row: LedgerRow) -> None:
        """When an earlier cleanup has removed the environment, and left the tables."""
        mode = self._mode(row)
        due = self._ask.merged is False and reclaim.is_due(row)
        # SQLMesh does not know the tables of a row in `reclaiming` any more: no janitor takes them.
        if row.phase == "reclaiming" or mode == "now" or (mode == "later" and due):
            self._reclaim(row)
        elif mode == "later":
            self._wait(row)
        else:
            self._leave(row)

    def _mode(self, row: LedgerRow) -> Literal["never", "later", "now"]:
        """What `reclaim` means for this environment.

        After a merge prod uses the tables. Where nobody said how the pull request ended, because it
        is open or GitHub was not asked, the sweep finds out.
        """
        request = self._ask
        if request.merged or request.reclaim == "never" or not reclaim.owns_anything(row):
            return "never"
        if request.reclaim == "always":
            return "now"
        known = request.merged is False or request.owner.pr_number is not None
        return "later" if known else "never"

    def _reclaim(self, row: LedgerRow) -> None:
        files = AdapterFiles(self._context.engine_adapter)
        done = reclaim.Reclaim(
            self._context, self._ledger, self._catalog, files, self._ask.owner, self._progress
        ).run(row)
        self.reclaimed, self.kept, self.leftovers = done.reclaimed, done.kept, done.leftovers

    def _wait(self, row: LedgerRow) -> None:
        self.kept = reclaim.kept_until_due(row, unmerged=self._ask.merged is False)

    def _leave(self, row: LedgerRow) -> None:
        preview = f"a preview, which prod never reads; {_JANITOR}"
        if self._ask.merged:
            why = f"read by prod once the merge is planned there, else {_JANITOR}"
        elif self._ask.reclaim == "never":
            why = f"`reclaim` is `never`; {_JANITOR}"
            preview = f"`reclaim` is `never`, and {preview}"
        else:
            why = _JANITOR
        self._keep(row, why, preview)
        self._ledger.delete(row.environment)

    def _keep(self, row: LedgerRow, why: str, why_preview: str) -> None:
        self.kept = reclaim.kept_until_ttl(
            row, self._context, self._ledger, why=why, why_preview=why_preview
        )


def record(ledger: Ledger, row: LedgerRow, phase: LedgerPhase) -> LedgerRow:
    """Writes the row as of now, in another phase; gives it back."""
    now = times.iso(times.now_milliseconds())
    written = row.model_copy(update={"phase": phase, "updated_at": now})
    ledger.put(written)
    return written
