"""Checks of a plan before anything is executed, so that prod is never written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core import constants as c
from sqlmesh.core.config import EnvironmentSuffixTarget
from sqlmesh.core.plan import stages
from sqlmesh.core.plan.stages import PlanStage

from ci_bot.errors import RequestRefused
from ci_bot.protocol.base import replace_undecodable_bytes
from ci_bot.protocol.environment import PROD_HINT
from ci_bot.protocol.plan import ChangeType
from ci_bot.worker.messages import MessageNames, report_times
from ci_bot.worker.planning.make_plan import BuiltPlan
from ci_bot.worker.project import is_file_of_every_project_model, list_files_that_define_model
from ci_bot.worker.runtime import SparkRelation, spark_catalog

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.snapshot import Node

_SHOWN = 3


def check_plan_leaves_prod_untouched(
    planned: BuiltPlan, found: Iterable[PlanStage], names: MessageNames
) -> None:
    """Refuses a plan of prod, and one that would alter a table version that prod references, or add
    or remove an interval of it.

    Previews of forward-only changes pass: they go to a `__dev` table of their own.

    Raises:
        RequestRefused: names the first such model and interval.
    """
    if not planned.plan.is_dev:
        raise RequestRefused(
            "This plan is prod's own, and prod is never written from here.",
            hint=PROD_HINT,
            reason_code="prod",
        )
    for stage in found:
        if isinstance(stage, stages.BackfillStage):
            for snapshot, intervals in stage.snapshot_to_intervals.items():
                if snapshot.is_model and intervals and planned.shares_prod_table(snapshot):
                    _refuse_plan_of_intervals(
                        names.short_name(snapshot.name), intervals[0][0], intervals[-1][1]
                    )
        elif isinstance(stage, stages.MigrateSchemasStage):
            for snapshot in stage.snapshots:
                if planned.shares_prod_table(snapshot):
                    raise RequestRefused(
                        f"This plan would alter prod's table of {names.short_name(snapshot.name)}.",
                        hint="Only prod's own plan may do that, after the merge: `sqlmesh plan`.",
                        reason_code="would_write_prod",
                    )
    for s_id, (start, end) in planned.plan.restatements.items():
        snapshot = planned.plan_snapshots[s_id]
        if planned.shares_prod_table(snapshot):
            _refuse_plan_of_intervals(names.short_name(snapshot.name), start, end)


def check_planned_views_apart_from_prod(context: Context, planned: BuiltPlan) -> None:
    """Refuses an environment whose views would be where prod has views or tables.

    A schema's name proves nothing: prod's models can be in one that is called
    `<schema>__<environment>`. A promotion would replace their views there, and the cleanup would
    drop the schema.

    Raises:
        RequestRefused: names the objects of prod that are there.
    """
    prod = context.state_reader.get_environment(c.PROD)
    if prod is None:
        return
    environment = planned.plan.environment
    ours = set(spark_catalog.list_spark_views_of_environment(context, environment).values())
    theirs = set(spark_catalog.list_spark_views_of_environment(context, prod).values()) | {
        SparkRelation.parse_name(info.table_name(), str(context.default_catalog))
        for info in prod.snapshots
        if info.is_model and not info.is_symbolic and info.version
    }
    if environment.suffix_target is EnvironmentSuffixTarget.SCHEMA:
        places = {view.schema_key for view in ours}
        taken = [item for item in theirs if item.schema_key in places]
    else:
        views = {view.object_key for view in ours}
        taken = [item for item in theirs if item.object_key in views]
    if taken:
        shown = ", ".join(item.shown_name for item in sorted(taken)[:_SHOWN])
        raise RequestRefused(
            f"The views of {environment.name} would be in the place of prod's: {shown}.",
            hint="Set another value of the input `environment-prefix`, or move these models of "
            "prod to a schema with another name.",
            reason_code="would_write_prod",
        )


def _refuse_plan_of_intervals(model: str, start: int, end: int) -> None:
    raise RequestRefused(
        f"This plan would write {model} from {report_times.format_iso_in_message(start)} to "
        f"{report_times.format_iso_in_message(end)} into the table that prod reads.",
        hint="Prod itself lacks these intervals, or the window reaches outside prod's data. Let "
        "prod catch up (`sqlmesh run`), or choose a window inside prod's data, then review again.",
        reason_code="would_write_prod",
    )


# Separates the pull request's own changes from base branch changes that prod does not have yet.
#
# The list of changed files and the lineage decide this; the base is not loaded a second time.


# Files that loading reads and that are not code: each changes the model that it defines, or none.
_DATA = (".sql", ".csv", ".tsv", ".yaml", ".yml")


@dataclass(frozen=True)
class PlannedBaseDrift:
    """The changed models that the pull request can have caused; None if its files are unknown.

    Attributes:
        removed_by_others: Models of prod that are not in the project, and that no changed file can
            have defined. (`describe_plan.list_models_removed_by_others`)
    """

    caused: frozenset[str] | None
    removed_by_others: frozenset[str] = frozenset()

    @classmethod
    def from_changed_files(
        cls,
        nodes: Mapping[str, Node],
        changed_files: Sequence[str] | None,
        repository: Path,
        opened: Collection[str] = (),
    ) -> PlannedBaseDrift:
        """Follows the changed files through the lineage to every model that they can reach.

        Args:
            nodes: models and audits of the new project by fully qualified name.
            opened: Absolute paths of the files that loading opened: any model may use any module
            among them.
        """
        if changed_files is None or any(
            is_file_of_every_project_model(path) for path in changed_files
        ):
            return cls(None)
        files = {replace_undecodable_bytes(str(repository / path)) for path in changed_files}
        models = {replace_undecodable_bytes(str(node._path)) for node in nodes.values()}
        read = files.intersection(map(replace_undecodable_bytes, opened))
        if any(not path.endswith(_DATA) for path in read - models):
            return cls(None)
        caused = {
            name
            for name, node in nodes.items()
            if not files.isdisjoint(
                map(replace_undecodable_bytes, list_files_that_define_model(node))
            )
        }
        pending = list(caused)
        readers: dict[str, list[str]] = {}
        for name, node in nodes.items():
            for parent in node.depends_on:
                readers.setdefault(parent, []).append(name)
        while pending:
            for reader in readers.get(pending.pop(), ()):
                if reader not in caused:
                    caused.add(reader)
                    pending.append(reader)
        return cls(frozenset(caused))

    def is_from_base(self, name: str, change: ChangeType, path: str | None) -> bool:
        """Whether the difference between this model and prod cannot come from the pull request."""
        if change == "removed":
            return name in self.removed_by_others
        return self.caused is not None and name not in self.caused
