"""A cleanup: removes the PR environment view by view, and verifies in Spark that it is gone.

SQLMesh's own synchronous invalidation drops whole schemas with CASCADE, discards its failures and
reports views that never existed; so the objects are enumerated, dropped and verified here, and the
state's record is deleted last. Until then the record must not expire: the janitor of any
`sqlmesh run` drops the schema of an expired environment with CASCADE, and a cleanup may be cut off
at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.environment import Environment

from ci_bot.errors import BadInput, RequestRefused
from ci_bot.protocol.base import Failure
from ci_bot.protocol.cleanup_report import CleanupDocument, Leftover
from ci_bot.protocol.environment import PROD
from ci_bot.protocol.messages import CleanupRequest
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.cleanup import reclaim
from ci_bot.worker.cleanup.reclaim import CleanupTables, write_phase_of_cleanup
from ci_bot.worker.messages import make_cancelled_failure, report_times
from ci_bot.worker.project import (
    UNPIN_HINT,
    OpenProject,
    collect_versions_of_project,
    configure_projects,
    create_project_context,
    make_project_place,
    opening,
    require_spark_gateway_of_project,
)
from ci_bot.worker.runtime import (
    SparkCatalog,
    SparkCatalogAdapterSql,
    SparkRelation,
    WorkerPhaseClock,
    spark_catalog,
)
from ci_bot.worker.state_store import (
    Ledger,
    LedgerRow,
    check_ownership_in_ledger,
    claim_environment_in_ledger,
    leases,
    read_environment_records_of_ledger,
)

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

# The janitor drops an expired environment at its next run, with CASCADE. A cleanup delays the
# expiry by this time, which is enough for the next cleanup if this one is cut off.
JANITOR_WAITS_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class CleanupPorts:
    """The clock and callbacks that a cleanup gets from its caller.

    `spark_is_done` is called after the last use of Spark. `last_words` takes a function that makes
    the document to answer with if the run is stopped.
    """

    clock: WorkerPhaseClock
    progress: Callable[[str, str, int | None, int | None], None]
    on_spark_start: Callable[[], None]
    spark_is_done: Callable[[], None] = lambda: None
    last_words: Callable[[Callable[[], CleanupDocument]], None] = lambda _words: None


@dataclass(frozen=True)
class CleanupObjects:
    """The objects of an environment: its views, and the schemas that belong to it alone."""

    views: list[SparkRelation]
    schemas: list[tuple[str, str]]


def separate_views_to_clean_up_from_prod(
    named: Iterable[SparkRelation], of_prod: Iterable[SparkRelation], *, own_schemas: bool
) -> tuple[CleanupObjects, list[str]]:
    """Separates the views that a cleanup may drop from those of prod, which can have a schema with
    an environment's name. Pure.

    Args:
        named: The views that state and ledger name; one may be spelled in several ways.
        own_schemas: Whether the environment has its own schemas. With the suffix on the table, the
            schema is prod's and is never dropped.

    Returns:
        The objects that the cleanup may drop, and the names of the views that are prod's.
    """
    of_prod = list(of_prod)
    taken, places = {view.object_key for view in of_prod}, {view.schema_key for view in of_prod}
    every = {view.object_key: view for view in named}
    views = sorted(view for key, view in every.items() if key not in taken)
    schemas = (
        {view.schema_key: (view.catalog, view.schema) for view in views} if own_schemas else {}
    )
    return (
        CleanupObjects(views, sorted(where for at, where in schemas.items() if at not in places)),
        sorted(every[key].shown_name for key in every.keys() & taken),
    )


def remove_environment(request: CleanupRequest, ports: CleanupPorts) -> CleanupDocument:
    """Removes one PR environment and proves it. Idempotent: an absent environment is a success.

    Raises:
        BadInput: the configuration is broken, or the suffix target cannot be cleaned on Spark.
        RequestRefused: the environment is pinned, or nothing proves that it is ours.
    """
    started = ports.clock.now()
    opened = open_for_cleanup(request, ports)
    if opened is None:
        return CleanupDocument(
            environment=request.environment,
            existed=False,
            result="nothing_to_do",
            state_record_removed=False,
            state_record_left=False,
            seconds=round(ports.clock.now() - started, 3),
            timings=dict(ports.clock.phases),
            versions=collect_versions_of_project(None),
        )
    try:
        return _EnvironmentRemoval(request, ports, opened, started).execute_removal()
    finally:
        opened.close_state()


def open_for_cleanup(request: CleanupRequest, ports: CleanupPorts) -> OpenProject | None:
    """Opens configuration and state without models; None if there is no state at all.

    No model is loaded, so broken models and macros do not stop a cleanup.
    """
    place = make_project_place(request, request.projects)
    configs, starts = configure_projects(place, ports.on_spark_start, clock=ports.clock)
    context = create_project_context(configs, place)
    require_spark_gateway_of_project(context)
    with ports.clock.time_phase("state"):
        state, facts = opening.open_project_state(context, place, write=True)
    if state is None:
        return None
    sqlmesh_compat.give_sqlmesh_state(context, state)
    catalogs = opening.list_prod_catalogs_of_project(state)
    if catalogs and sqlmesh_compat.read_default_catalog_of_sqlmesh(context) not in catalogs:
        sqlmesh_compat.set_known_catalog_of_sqlmesh(
            configs, opening.ask_spark_for_project_catalog(context)
        )
        context = create_project_context(configs, place)
        sqlmesh_compat.give_sqlmesh_state(context, state)
    if request.environment in context.pinned_environments:
        raise RequestRefused(
            f"{request.environment} is pinned in the project's configuration, so it is not "
            "removed.",
            hint=UNPIN_HINT,
            reason_code="pinned",
        )
    return OpenProject(context, "state", facts, ports.clock, starts)


class _EnvironmentRemoval:
    """One cleanup, from the enumeration to the state record."""

    def __init__(
        self, request: CleanupRequest, ports: CleanupPorts, opened: OpenProject, started: float
    ) -> None:
        self.request = request
        self.ports = ports
        self.opened = opened
        self.context: Context = opened.context
        self.started = started
        self.ledger = Ledger(sqlmesh_compat.get_sqlmesh_state_adapter(self.context))
        self.catalog = SparkCatalog(SparkCatalogAdapterSql(self.context.engine_adapter))
        self.views_dropped: list[str] = []
        self.schemas_dropped: list[str] = []
        self.leftovers: list[Leftover] = []
        self.foreign: list[str] = []
        self.record_removed = False
        self.record_left = False
        self.tables = CleanupTables(
            request, self.context, self.ledger, self.catalog, ports.progress
        )

    def execute_removal(self) -> CleanupDocument:
        # Check ownership before stopping an apply: it may be another repository's.
        self._read_records()
        with leases.hold_cleanup_lease(
            self.context, self.request.environment, self.request.owner, self.ports.progress
        ):
            return self._remove_objects()

    def _remove_objects(self) -> CleanupDocument:
        stored, row = self._read_records()
        if stored is None and (row is None or row.phase == "removed"):
            return self._make_document("nothing_to_do", existed=False)
        if stored is None and row is not None and row.phase in reclaim.PHASES:
            with self.ports.clock.time_phase("reclaim"):
                self.tables.settle_removed_row(row)
            return self._make_ended_document(existed=False)
        if stored is not None and stored.suffix_target is EnvironmentSuffixTarget.CATALOG:
            raise BadInput(
                f"{self.request.environment} was made with `environment_suffix_target: catalog`, "
                "which cannot be removed on Spark.",
                hint="Drop its catalogs by hand, then delete the environment with "
                f"`sqlmesh invalidate {self.request.environment}`.",
                reason_code="suffix_target",
            )
        self.record_left = stored is not None
        found = self._enumerate_objects(stored, row)
        self.ports.last_words(self._make_stopped_document)
        if self.request.claim:
            row = claim_environment_in_ledger(self.request, self.context, self.ledger, row, stored)
        if row is not None:
            row = write_phase_of_cleanup(self.ledger, self.tables.prepare_row(row), "cleaning")
        if stored is not None:
            lives_until = report_times.read_milliseconds_now() + JANITOR_WAITS_MS
            sqlmesh_compat.mark_sqlmesh_environment_unfinished(
                self.context, stored, lives_until=lives_until
            )
        with self.ports.clock.time_phase("drop"):
            self._drop_views(found)
        self.ports.progress("verify", "asking Spark what is left", None, None)
        with self.ports.clock.time_phase("verify"):
            try:
                self._verify_schemas(found)
            except Exception as error:
                # Spark may be gone. Everything that was not verified counts as left.
                what = f"what {self.request.environment} consists of, which could not be verified"
                self.leftovers.append(
                    Leftover(object=what, why=reclaim.describe_cleanup_error_in_line(error))
                )
        if row is None or not self.tables.needs_spark(row):
            self.ports.spark_is_done()
        self.ports.progress("records", "closing the records in the state database", None, None)
        try:
            self._delete_state_record(stored, row)
            if row is not None:
                with self.ports.clock.time_phase("tables"):
                    complete = not self.foreign and not self.leftovers
                    self.tables.settle_tables(row, complete=complete)
        except Exception as error:
            # The drops stay in the report; the next run finds the views gone and deletes the
            # records.
            records = f"records of {self.request.environment} in the state database"
            self.leftovers.append(
                Leftover(object=records, why=reclaim.describe_cleanup_error_in_line(error))
            )
        return self._make_ended_document(existed=True)

    def _read_records(self) -> tuple[Environment | None, LedgerRow | None]:
        """Reads the records of the environment in the state and in the ledger.

        Raises:
            RequestRefused: they do not prove that it is ours, and nobody claims it.
        """
        stored, row = read_environment_records_of_ledger(
            self.context.state_sync, self.ledger, self.request.environment
        )
        check_ownership_in_ledger(
            self.request.environment, self.request.owner, row, stored, claim=self.request.claim
        )
        return stored, row

    def _enumerate_objects(
        self, stored: Environment | None, row: LedgerRow | None
    ) -> CleanupObjects:
        self.ports.progress("enumerate", "asking ledger, state and Spark", None, None)
        named = (
            [*spark_catalog.list_spark_views_of_environment(self.context, stored).values()]
            if stored is not None
            else []
        )
        named += [
            SparkRelation(item.catalog, item.db, item.name)
            for item in (row.objects if row else ())
            if item.kind == "view"
        ]
        prod = self.context.state_sync.get_environment(PROD)
        of_prod = (
            spark_catalog.list_spark_views_of_environment(self.context, prod).values()
            if prod
            else ()
        )
        suffix = (
            stored.suffix_target.value if stored is not None else row.suffix_target if row else ""
        )
        found, self.foreign = separate_views_to_clean_up_from_prod(
            named, of_prod, own_schemas=suffix == EnvironmentSuffixTarget.SCHEMA.value
        )
        return found

    def _drop_views(self, found: CleanupObjects) -> None:
        for number, view in enumerate(found.views, start=1):
            self.ports.progress("drop", f"view {view.shown_name}", number, len(found.views))
            try:
                was_there = self.catalog.drop_view(view)
            except Exception as error:
                self.leftovers.append(
                    Leftover(
                        object=view.shown_name, why=reclaim.describe_cleanup_error_in_line(error)
                    )
                )
            else:
                if was_there:
                    self.views_dropped.append(view.shown_name)

    def _verify_schemas(self, found: CleanupObjects) -> None:
        """Lists the rest of each schema in Spark, drops it if it is empty, and lists it again.

        Objects that Spark still lists are not removed, even if their drop succeeded. Tables and
        views that are not ours stay, and keep their schema.
        """
        known = {leftover.object for leftover in self.leftovers}
        ours = {view.object_key: view for view in found.views}
        places = {view.schema_key: (view.catalog, view.schema) for view in found.views}
        for catalog, schema in sorted(places.values()):
            left = self.catalog.list_names(catalog, schema)
            if left is None:
                continue
            for name in sorted(left):
                view = ours.get(SparkRelation(catalog, schema, name).object_key)
                if view is None:
                    if (catalog, schema) in found.schemas:
                        self.foreign.append(f"{schema}.{name}")
                elif view.shown_name not in known:
                    why = spark_catalog.STILL_THERE
                    self.leftovers.append(Leftover(object=view.shown_name, why=why))
            if (catalog, schema) in found.schemas and not left:
                self._drop_schema(catalog, schema)
        gone = {leftover.object for leftover in self.leftovers}
        self.views_dropped = [view for view in self.views_dropped if view not in gone]

    def _drop_schema(self, catalog: str, schema: str) -> None:
        try:
            self.catalog.drop_empty_schema(catalog, schema)
            shown = self.catalog.schema_exists(catalog, schema)
        except Exception as error:
            self.leftovers.append(
                Leftover(object=schema, why=reclaim.describe_cleanup_error_in_line(error))
            )
            return
        if shown:
            why = spark_catalog.STILL_THERE
            self.leftovers.append(Leftover(object=schema, why=why))
        else:
            self.schemas_dropped.append(schema)

    def _delete_state_record(self, stored: Environment | None, row: LedgerRow | None) -> None:
        """Deletes the state's record, last; keeps it for a retry if a drop of ours failed.

        With foreign objects the record is deleted although the schema stays: after the record's
        expiry the janitor of the team's next `sqlmesh run` would drop that schema with CASCADE.
        """
        if stored is not None and (self.foreign or not self.leftovers):
            self.record_removed = sqlmesh_compat.delete_sqlmesh_environment_record(
                self.context, stored
            )
            self.record_left = not self.record_removed
            if self.record_left:
                why = "Somebody planned the environment again while it was removed."
                self.leftovers.append(Leftover(object=f"record of {stored.name}", why=why))
        if row is not None and (self.foreign or self.leftovers):
            # The row no longer describes a record in the state, and must not match a later one.
            write_phase_of_cleanup(self.ledger, row, "cleaning" if self.record_left else "leftover")

    def _make_ended_document(self, *, existed: bool) -> CleanupDocument:
        self.leftovers += self.tables.leftovers
        complete = not self.leftovers and not self.foreign
        done = existed or bool(self.tables.reclaimed)
        return self._make_document(
            ("removed" if done else "nothing_to_do") if complete else "incomplete",
            existed=existed,
            failure=None if complete else self._make_incomplete_failure(),
        )

    def _make_stopped_document(self) -> CleanupDocument:
        return self._make_document(
            "incomplete", existed=True, failure=make_cancelled_failure("cleanup")
        )

    def _make_incomplete_failure(self) -> Failure:
        left = [leftover.object for leftover in self.leftovers] + self.foreign
        objects_are = "1 object is" if len(left) == 1 else f"{len(left)} objects are"
        message = f"{objects_are} left of {self.request.environment}: {', '.join(left[:5])}."
        steps = []
        if self.leftovers:
            message += f" {self.leftovers[0].why}"
            steps.append("Fix the cause.")
        if self.foreign:
            steps.append(
                "Objects that the environment did not make are kept on purpose: move or drop them."
            )
        return Failure(
            stage="cleanup",
            reason_code="foreign_objects" if self.foreign and not self.leftovers else "leftovers",
            exit_code=4,
            message=message,
            hint=" ".join([*steps, "Then run the cleanup again; it finishes the job."]),
        )

    def _make_document(self, result: Any, **parts: Any) -> CleanupDocument:
        return CleanupDocument(
            environment=self.request.environment,
            result=result,
            views_dropped=sorted(self.views_dropped),
            schemas_dropped=sorted(self.schemas_dropped),
            leftovers=self.leftovers,
            foreign=sorted(self.foreign),
            tables_reclaimed=self.tables.reclaimed,
            tables_kept=self.tables.kept,
            state_record_removed=self.record_removed,
            state_record_left=self.record_left,
            seconds=round(self.ports.clock.now() - self.started, 3),
            timings=dict(self.ports.clock.phases),
            versions=collect_versions_of_project(self.opened),
            **parts,
        )
