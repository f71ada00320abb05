"""What an apply writes into the ledger: what it is about to make, and how it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlmesh.core.snapshot import Snapshot, SnapshotId

from ci_bot.contracts.messages import ApplyRequest
from ci_bot.worker.plan.planning import Planned
from ci_bot.worker.process.channel import log
from ci_bot.worker.records.hold import Hold
from ci_bot.worker.records.lease import LeaseLostError
from ci_bot.worker.records.ledger import (
    Ledger,
    LedgerObject,
    LedgerPhase,
    LedgerRow,
    LedgerSnapshot,
    ledger_objects,
)
from ci_bot.worker.warehouse import objects
from ci_bot.worker.warehouse.catalog import Catalog
from ci_bot.worker.words import times
from ci_bot.worker.words.problems import sentence


class Record:
    """The ledger's row of one apply. It is written under the lease, or not at all."""

    def __init__(
        self, request: ApplyRequest, context: Any, ledger: Ledger, catalog: Catalog, hold: Hold
    ) -> None:
        self._ask = request
        self._context = context
        self._ledger = ledger
        self._catalog = catalog
        self._hold = hold

    def begin(
        self,
        planned: Planned,
        plan_id: str | None,
        made: Collection[SnapshotId] | None = None,
    ) -> None:
        """Everything that the apply is about to make, before its first write.

        Args:
            made: Only of these snapshots anything is made, and no view; None: all of the plan.
                What is not made now may be somebody else's by the time that we do.

        Raises:
            LeaseLostError: the environment is another run's by now; nothing was written.
        """
        default_catalog = str(self._context.default_catalog)
        environment = planned.plan.environment
        changed = [s for s in planned.changed if made is None or s.snapshot_id in made]
        tables = objects.physical_tables(changed, planned.deployable, default_catalog)
        views = objects.views_of(self._context, environment) if made is None else {}
        self._ledger.prepare()
        before = self._ledger.get(self._ask.environment)
        found = ledger_objects(views.values(), tables, self._catalog)
        if before is not None:
            found = _keep_first_observation(before, found)
        now = times.iso(times.now_milliseconds())
        owner = self._ask.owner
        with self._hold.fence():
            self._ledger.put(
                LedgerRow(
                    environment=self._ask.environment,
                    owner=owner.name,
                    pr_number=owner.pr_number,
                    head_sha=owner.head_sha,
                    plan_id=plan_id,
                    phase="applying",
                    gateway=self._context.selected_gateway,
                    catalog=default_catalog,
                    suffix_target=str(environment.naming_info.suffix_target.value),
                    snapshots=_snapshots(planned, changed, before, whole=made is None),
                    objects=found,
                    created_at=before.created_at if before else now,
                    updated_at=now,
                )
            )

    def end(self, phase: LedgerPhase) -> None:
        """How far it got. Without the lease the row is another run's, and stays as it is; and a
        state that cannot be told costs no report: the row then says less than there is.
        """
        try:
            with self._hold.fence():
                row = self._ledger.get(self._ask.environment)
                if row is not None:
                    now = times.iso(times.now_milliseconds())
                    self._ledger.put(row.model_copy(update={"phase": phase, "updated_at": now}))
        except LeaseLostError:
            pass
        except Exception as error:
            log(f"The ledger was not told of `{phase}`: {sentence(error)}")


def _snapshots(
    planned: Planned, changed: Sequence[Snapshot], before: LedgerRow | None, *, whole: bool
) -> list[LedgerSnapshot]:
    """Those of the plan that are made now, then those that only an earlier plan of it made.

    Args:
        whole: The environment will consist of these; else it stays what it is, if there is one.
    """
    new = {snapshot.snapshot_id for snapshot in planned.plan.new_snapshots}
    known = before.snapshots if before else []
    earlier = [item for item in known if item.ours or not whole]
    ours = {(item.name, item.identifier) for item in earlier if item.ours}
    now = {(snapshot.name, snapshot.identifier) for snapshot in changed}
    return [
        LedgerSnapshot(
            name=snapshot.name,
            identifier=snapshot.identifier,
            version=str(snapshot.version),
            dev_version=snapshot.dev_version,
            ours=snapshot.snapshot_id in new or (snapshot.name, snapshot.identifier) in ours,
        )
        for snapshot in changed
        if snapshot.is_model and snapshot.version
    ] + [item for item in earlier if (item.name, item.identifier) not in now]


def _keep_first_observation(before: LedgerRow, found: list[LedgerObject]) -> list[LedgerObject]:
    """What an earlier apply of ours created is still ours, although it exists by now."""
    known = {_place(item): item.existed for item in before.objects}
    kept = [
        item.model_copy(update={"existed": known.get(_place(item), item.existed)}) for item in found
    ]
    seen = {_place(item) for item in kept}
    # Objects of an earlier plan that this one no longer has must still be found by a cleanup.
    return kept + [item for item in before.objects if _place(item) not in seen]


def _place(item: LedgerObject) -> tuple[str, str, str, str]:
    return item.kind, item.catalog, item.db, item.name
