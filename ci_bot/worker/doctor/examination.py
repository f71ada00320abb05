"""`ci-bot doctor`: checks every part that the other activities need, and changes nothing.

It creates nothing in the state or in the warehouse. A check that raises is a finding and does not
end the run, so that one run names everything that is wrong.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlmesh.core import constants as c

from ci_bot.errors import BotError
from ci_bot.protocol.base import Versions
from ci_bot.protocol.files import PrivateDirectories
from ci_bot.protocol.messages import DoctorDocument, DoctorRequest
from ci_bot.protocol.plan import CheckStatus, ProjectCheck
from ci_bot.protocol.rules import quote_names
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.doctor import bundled_bot, spark_checks, spark_network, state_checks
from ci_bot.worker.doctor.spark_network import NetworkFacts
from ci_bot.worker.messages import MessageNames, extract_sentence_of_error, name_file_in_message
from ci_bot.worker.project import (
    FIX,
    ProjectStateFacts,
    checks,
    collect_versions_of_project,
    configure_projects,
    create_project_context,
    describe_merge_obstacle_in_project,
    is_spark_gateway_of_project,
    list_gateways_of_project,
    list_lfs_pointers,
    list_seed_files_of_project,
    load_project,
    make_project_place,
    opening,
    run_unit_tests,
)
from ci_bot.worker.runtime import WorkerPhaseClock, java, load_trace
from ci_bot.yaml_reader import read_yaml_or_none

if TYPE_CHECKING:
    from sqlmesh.core.context import Context
    from sqlmesh.core.environment import Environment
    from sqlmesh.core.state_sync import StateSync

# The events that GitHub must let through to a repository's workflows: a rule that blocks them
# leaves no trace.
#
# Workflow execution protections are lists of the events and of the actors that may start a
# workflow: https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-
# features/actions-policies/workflow-execution-protections


_FOLDER = Path(".github") / "workflows"
# This action, or its directory for reviews, from any publisher.
_USES = re.compile(r"[\w.-]+/sqlmesh-plan-review(?:/review)?@")

# The action with Spark, because only this one can build.
_BUILDS = re.compile(r"[\w.-]+/sqlmesh-plan-review@")
_PLACEHOLDER = "@" + "0" * 40
_LARGEST = 1_000_000
# `/sqlmesh` in a comment starts another workflow, with the token of the job that reads the comment.
_STARTED_BY_A_JOB = "workflow_dispatch"


def check_workflow_events(repository: Path) -> ProjectCheck | None:
    """Lists the events that start this action here; None if no workflow uses it."""
    used = [
        workflow for workflow in _read_workflows(repository) if _workflow_uses_this_action(workflow)
    ]
    events = sorted({event for workflow in used for event in _list_events(workflow)})
    if not events:
        return None
    message = f"this action is started by {', '.join(events)}"
    fix = (
        "Nothing to do, unless the repository or its organization has workflow execution "
        "protections: their rules have to let these events in"
    )
    if _STARTED_BY_A_JOB in events:
        fix += ", and `github-actions[bot]`, which starts what a comment asks for"
    return ProjectCheck(name="workflows", status="ok", message=message, fix=f"{fix}.")


def check_missing_workflows(repository: Path) -> Iterator[ProjectCheck]:
    """Lists the missing workflows of this action, each with the command that writes it."""
    used = [
        workflow for workflow in _read_workflows(repository) if _workflow_uses_this_action(workflow)
    ]
    if any(
        _PLACEHOLDER in str(step.get("uses"))
        for each in used
        for step in _list_workflow_steps(each)
    ):
        yield ProjectCheck(
            name="workflows",
            status="warn",
            message="a workflow names the placeholder of the documents instead of a release's "
            "commit, and no run can begin with it",
            fix="`ci-bot init --action OWNER/NAME@COMMIT --upgrade` names a real one.",
        )
    events = {event for workflow in used for event in _list_events(workflow)}
    builds = any(
        _STARTED_BY_A_JOB in _list_events(workflow)
        and any(_BUILDS.match(str(step.get("uses"))) for step in _list_workflow_steps(workflow))
        for workflow in used
    )
    if builds and not events & {"pull_request_target", "schedule"}:
        yield ProjectCheck(
            name="workflows",
            status="warn",
            message="a workflow builds environments, and none removes them when a pull request "
            "is closed",
            fix="`ci-bot init --level apply` writes cleanup.yml.",
        )


def _read_workflows(repository: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the workflows of a repository that can be read."""
    for file in sorted((repository / _FOLDER).glob("*.y*ml")):
        if file.is_file() and file.stat().st_size <= _LARGEST:
            workflow = read_yaml_or_none(file.read_text(encoding="utf-8", errors="replace"))
            if isinstance(workflow, dict):
                yield workflow


def _workflow_uses_this_action(workflow: Mapping[str, Any]) -> bool:
    return any(_USES.match(str(step.get("uses"))) for step in _list_workflow_steps(workflow))


def _list_workflow_steps(workflow: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    jobs = workflow.get("jobs")
    return [
        step
        for job in (jobs.values() if isinstance(jobs, dict) else ())
        if isinstance(job, dict) and isinstance(job.get("steps"), list)
        for step in job["steps"]
        if isinstance(step, dict)
    ]


def _list_events(workflow: Mapping[str, Any]) -> list[str]:
    """Lists the events of `on:`, in any of its three forms."""
    on = workflow.get("on")
    return [str(event) for event in on] if isinstance(on, list | dict) else [str(on)]


_LONGEST = 4_000


@dataclass(frozen=True)
class DoctorPorts:
    """The surroundings that the doctor checks, and its callbacks; Spark will start `python`."""

    clock: WorkerPhaseClock
    progress: Callable[[str, str], None]
    on_spark_start: Callable[[], None]
    environ: Mapping[str, str]
    python: str
    network: NetworkFacts


def examine_project(request: DoctorRequest, ports: DoctorPorts) -> DoctorDocument:
    """Runs every check. A failed check is a finding and never raises."""
    opening.refuse_postgres_writes_of_project()
    return DoctorExamination(request, ports).run_checks()


class DoctorExamination:
    """One examination; later checks use the results of earlier ones."""

    def __init__(self, request: DoctorRequest, ports: DoctorPorts) -> None:
        self.request = request
        self.ports = ports
        self.place = make_project_place(request, request.projects)
        self.checks: list[ProjectCheck] = []
        self.context: Context  # set by `_check_configuration`, without which no other check runs
        self.state: StateSync | None = None
        self.facts: ProjectStateFacts | None = None
        self.prod: Environment | None = None

    def run_checks(self) -> DoctorDocument:
        started = self.ports.clock.now()
        self._run_check("versions", self._check_versions)
        configured = self._run_check("configuration", self._check_configuration)
        if configured:
            self._run_check("directories", self._check_directories)
            self._run_check("suffix target", self._check_suffix_target)
            self._run_check("cicd_bot", self._check_bundled_bot)
            self._run_check("workflows", self._check_workflows)
            self._run_check("connection", self._check_connection)
            try:
                if self._run_check("state", self._check_state):
                    self._examine_models()
                    if self.state is not None:
                        self._examine_state(self.state)
            finally:
                if self.state is not None:
                    self.state.close()
        spark_next = configured and is_spark_gateway_of_project(self.context, self.context.gateway)
        if spark_next:
            # A session would wait a minute for an absent master.
            spark_next = self._run_check("where Spark runs", self._check_spark_location)
        spark_runs = self._run_check("java", self._check_java) and spark_next
        spark_runs = spark_runs and self._run_check("spark", self._check_spark)
        if spark_runs and self._run_check("executors", self._check_executors):
            views = spark_checks.list_prod_views_for_doctor(self.context, self.prod)
            self._run_check(
                "catalogs",
                lambda: self.checks.append(spark_checks.check_spark_catalogs(self.context)),
            )
            self._run_check(
                "views",
                lambda: self.checks.append(
                    spark_checks.check_catalog_supports_views(self.context, views)
                ),
            )
            self._run_check(
                "listing",
                lambda: self.checks.append(spark_checks.check_spark_listing(self.context, views)),
            )
            self._run_check(
                "rights",
                lambda: self.checks.append(spark_checks.check_spark_rights(self.context, views)),
            )
        return DoctorDocument(
            checks=self.checks,
            configured=configured,
            seconds=round(self.ports.clock.now() - started, 3),
            timings=dict(self.ports.clock.phases),
            versions=self._read_current_versions(),
        )

    def _run_check(self, name: str, action: Callable[[], None]) -> bool:
        """Runs one check; returns whether later checks can rely on it."""
        self.ports.progress("doctor", name)
        before = len(self.checks)
        try:
            with self.ports.clock.time_phase(name):
                action()
        except BotError as error:
            self._add_finding(name, "fail", error.message, error.hint)
        except Exception as error:
            self._add_finding(
                name, "fail", extract_sentence_of_error(error), "The log has the whole story."
            )
            sys.excepthook(type(error), error, error.__traceback__)
        return all(check.status != "fail" for check in self.checks[before:])

    def _add_finding(
        self, name: str, status: CheckStatus, message: str, fix: str | None = None
    ) -> None:
        shown = shorten_redacted(
            PrivateDirectories({self.place.repository: ""}).hide_in_text(message), _LONGEST
        )
        limited = fix[:_LONGEST] if fix else None
        self.checks.append(ProjectCheck(name=name, status=status, message=shown, fix=limited))

    def _read_current_versions(self) -> Versions:
        versions = collect_versions_of_project(None)
        if self.facts is None:
            return versions
        return versions.model_copy(
            update={
                "state_schema": self.facts.schema_version,
                "state_sqlmesh": self.facts.sqlmesh_version,
                "state_engine": self.facts.engine,
            }
        )

    def _check_versions(self) -> None:
        self.checks.append(checks.check_versions_for_project(collect_versions_of_project(None)))

    def _check_configuration(self) -> None:
        configs, _ = configure_projects(
            self.place, self.ports.on_spark_start, clock=self.ports.clock
        )
        self.context = create_project_context(configs, self.place)
        self.checks.append(checks.check_project_configuration(self.context, self.place))

    def _check_directories(self) -> None:
        self.checks.append(checks.check_project_directories(self.place))

    def _check_suffix_target(self) -> None:
        found = checks.check_suffix_target_of_project(self.context)
        if found is not None:
            self.checks.append(found)

    def _check_bundled_bot(self) -> None:
        for line in bundled_bot.check_keys_of_bundled_bot(self.context, self.place.projects[0]):
            self.checks.append(line)

    def _check_workflows(self) -> None:
        found = check_workflow_events(self.place.repository)
        if found is not None:
            self.checks.append(found)
        for missing in check_missing_workflows(self.place.repository):
            self.checks.append(missing)

    def _check_connection(self) -> None:
        self.checks.append(checks.check_connection_of_project(self.context))

    def _check_state(self) -> None:
        self.state, self.facts = opening.open_project_state(self.context, self.place, write=False)
        exists = self.state is not None
        self.checks.append(
            checks.check_state_of_project(self.context, exists=exists, facts=self.facts)
        )

    def _examine_models(self) -> None:
        """Loads the models, which runs the project's code, and checks them as a review does."""
        if not self._run_check("models", self._check_models):
            return
        names = MessageNames(self.context.default_catalog, self.context.default_dialect)
        repository = self.place.repository
        self._run_check("merges", lambda: self._check_merges(names))
        self._run_check(
            "lint",
            lambda: self.checks.append(
                checks.summarize_lint_check_of_project(
                    checks.lint_project(self.context, names, repository)
                )
            ),
        )
        self._run_check(
            "format",
            lambda: self.checks.append(
                checks.summarize_format_check_of_project(
                    checks.check_project_formatting(self.context, None, repository)
                )
            ),
        )
        self._run_check(
            "unit tests",
            lambda: self.checks.append(
                checks.summarize_tests_check_of_project(run_unit_tests(self.context, repository))
            ),
        )

    def _check_models(self) -> None:
        if self.state is not None:
            sqlmesh_compat.give_sqlmesh_state(self.context, self.state)
        else:
            sqlmesh_compat.load_sqlmesh_context_without_state(self.context)
        load_project(self.context, self.ports.clock.time_phase("load"), self.place.repository)
        pointers = self._list_lfs_pointers()
        if pointers:
            self._add_finding(
                "models",
                "fail",
                f"{len(self.context.models)} models load, and of {quote_names(pointers)} the "
                "checkout holds only a pointer of Git LFS, whose text would be loaded as data",
                f"See to it that {FIX}.",
            )
            return
        self._add_finding("models", "ok", f"{len(self.context.models)} models load")

    def _check_merges(self, names: MessageNames) -> None:
        gateways = list_gateways_of_project(self.context.config, self.context.gateway)
        found = {
            names.short_name(name): why
            for name, model in self.context.models.items()
            if (why := describe_merge_obstacle_in_project(model, gateways)) is not None
        }
        if not found:
            self._add_finding("merges", "ok", "no model merges into a table without MERGE")
            return
        self._add_finding(
            "merges",
            "warn",
            f"SQLMesh merges into {', '.join(sorted(found))}, and {found[min(found)]}, as far as "
            "the configuration says: the first batch works and each later one fails.",
            "Give the models, or the model defaults, a `table_format` that takes a MERGE "
            "(iceberg) or `storage_format delta`, or choose another kind.",
        )

    def _list_lfs_pointers(self) -> list[str]:
        """Lists the seeds and loaded files for which the checkout has only an LFS pointer."""
        seeds = list_seed_files_of_project(self.context.models.values())
        found = list_lfs_pointers([*load_trace.list_files_in_load_trace(), *seeds])
        return [name_file_in_message(path, self.place.repository) for path in found]

    def _examine_state(self, state: StateSync) -> None:
        catalog = sqlmesh_compat.read_default_catalog_of_sqlmesh(self.context)
        dialect = self.context.default_dialect
        prefix = self.request.environment_prefix
        self._run_check(
            "prod", lambda: self.checks.append(state_checks.check_prod_exists_in_state(state))
        )
        self._run_check(
            "gaps",
            lambda: self.checks.append(state_checks.check_interval_gaps(state, catalog, dialect)),
        )
        self._run_check(
            "state size", lambda: self.checks.append(state_checks.check_state_size(state))
        )
        self._run_check(
            "environments",
            lambda: self.checks.append(state_checks.check_environments_in_state(state, prefix)),
        )
        self._run_check("ledger", lambda: self._check_ledger(state))
        self._run_check(
            "estimates", lambda: self.checks.append(state_checks.check_estimate_accuracy(state))
        )
        self.prod = state.get_environment(c.PROD)
        if self.context.models:
            self._run_check("python", lambda: self._check_python(state))

    def _check_ledger(self, state: StateSync) -> None:
        found = state_checks.check_ledger_is_readable(state)
        if found is not None:
            self.checks.append(found)

    def _check_python(self, state: StateSync) -> None:
        found = state_checks.check_python_of_prod_models(
            state, self.context, platform.python_version()
        )
        if found is not None:
            self.checks.append(found)

    def _check_java(self) -> None:
        self.checks.append(spark_checks.check_java_runtime(self.ports.environ, self.ports.python))

    def _check_spark_location(self) -> None:
        settings = sqlmesh_compat.read_spark_settings_of_sqlmesh(self.context)
        network = self.ports.network
        for line in spark_network.check_spark_network(settings, self.ports.environ, network):
            self.checks.append(line)
        for line in spark_checks.check_spark_files(
            settings, self.ports.environ, java.list_spark_jar_directories(self.ports.environ)
        ):
            self.checks.append(line)

    def _check_executors(self) -> None:
        found = spark_checks.check_spark_executors(self.context)
        if found is not None:
            self.checks.append(found)

    def _check_spark(self) -> None:
        self.checks.append(spark_checks.check_spark_session(self.context, self.ports.clock.now))
