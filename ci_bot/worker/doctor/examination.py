"""`ci-bot doctor`: every part that the other activities need, looked at and left as it is.

Nothing is created, neither in the state nor in the warehouse. A check that raises is a finding, not
the end, so that one run names everything that is wrong.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmesh.core import constants as c

from ci_bot.errors import BotError
from ci_bot.protocol.base import Versions
from ci_bot.protocol.directories import Places
from ci_bot.protocol.messages import DoctorDocument, DoctorRequest
from ci_bot.protocol.plan import CheckStatus, ProjectCheck
from ci_bot.redaction import shortened
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.doctor import bundled_bot, spark_checks, spark_network, state_checks
from ci_bot.worker.doctor.spark_network import Network
from ci_bot.worker.messages import Names, file_name, load_yaml, sentence
from ci_bot.worker.project import (
    FIX,
    StateFacts,
    checks,
    configure,
    is_spark,
    list_gateways,
    list_pointers,
    list_seed_files,
    load,
    new_context,
    opening,
    place_of,
    run_unit_tests,
    validation,
    versions_of,
    why_no_merge,
)
from ci_bot.worker.rules import names
from ci_bot.worker.runtime import Clock, java, load_trace

# What a repository's workflows need GitHub to let in: a rule that keeps them out leaves no trace.
#
# Workflow execution protections are lists of the events and of the actors that may start a
# workflow: https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-
# features/actions-policies/workflow-execution-protections


_FOLDER = Path(".github") / "workflows"
# This action, or its directory for reviews, by whoever publishes it.
_USES = re.compile(r"[\w.-]+/sqlmesh-plan-review(?:/review)?@")

# The one with Spark, which alone can build.
_BUILDS = re.compile(r"[\w.-]+/sqlmesh-plan-review@")
_PLACEHOLDER = "@" + "0" * 40

_LARGEST = 1_000_000
# `/sqlmesh` in a comment starts another workflow, by the token of the job that reads the comment.
_STARTED_BY_A_JOB = "workflow_dispatch"


def check(repository: Path) -> ProjectCheck | None:
    """The events that start this action here; None where no workflow uses it."""
    used = [workflow for workflow in _workflows(repository) if _uses_this_action(workflow)]
    events = sorted({event for workflow in used for event in _events(workflow)})
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


def check_missing(repository: Path) -> Iterator[ProjectCheck]:
    """What the workflows of this action still lack, each with the command that writes it."""
    used = [workflow for workflow in _workflows(repository) if _uses_this_action(workflow)]
    if any(_PLACEHOLDER in str(step.get("uses")) for each in used for step in _steps(each)):
        yield ProjectCheck(
            name="workflows",
            status="warn",
            message="a workflow names the commit that stands for a release in the documents, and "
            "no run can begin with it",
            fix="`ci-bot init --action OWNER/NAME@COMMIT --upgrade` names a real one.",
        )
    events = {event for workflow in used for event in _events(workflow)}
    builds = any(
        _STARTED_BY_A_JOB in _events(workflow)
        and any(_BUILDS.match(str(step.get("uses"))) for step in _steps(workflow))
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


def _workflows(repository: Path) -> Iterator[Mapping[str, Any]]:
    """The workflows of a repository that can be read."""
    for file in sorted((repository / _FOLDER).glob("*.y*ml")):
        if file.is_file() and file.stat().st_size <= _LARGEST:
            workflow = load_yaml(file.read_text(encoding="utf-8", errors="replace"))
            if isinstance(workflow, dict):
                yield workflow


def _uses_this_action(workflow: Mapping[str, Any]) -> bool:
    return any(_USES.match(str(step.get("uses"))) for step in _steps(workflow))


def _steps(workflow: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    jobs = workflow.get("jobs")
    return [
        step
        for job in (jobs.values() if isinstance(jobs, dict) else ())
        if isinstance(job, dict) and isinstance(job.get("steps"), list)
        for step in job["steps"]
        if isinstance(step, dict)
    ]


def _events(workflow: Mapping[str, Any]) -> list[str]:
    """What `on:` names, in any of its three forms."""
    on = workflow.get("on")
    return [str(event) for event in on] if isinstance(on, list | dict) else [str(on)]


_LONGEST = 4_000


@dataclass(frozen=True)
class DoctorPorts:
    """What a doctor needs from its surroundings; `python` is what Spark will start."""

    clock: Clock
    progress: Callable[[str, str], None]
    on_spark_start: Callable[[], None]
    environ: Mapping[str, str]
    python: str
    network: Network


def doctor(request: DoctorRequest, ports: DoctorPorts) -> DoctorDocument:
    """Looks at everything. Never raises for what it finds."""
    opening.read_only_environment()
    return _Doctor(request, ports).examine()


class _Doctor:
    """One examination; what a check learns is there for those after it."""

    def __init__(self, request: DoctorRequest, ports: DoctorPorts) -> None:
        self.request = request
        self.ports = ports
        self.place = place_of(request, request.projects)
        self.checks: list[ProjectCheck] = []
        self.context: Any = None
        self.state: Any = None
        self.facts: StateFacts | None = None
        self.prod: Any = None

    def examine(self) -> DoctorDocument:
        started = self.ports.clock.now()
        self._check("versions", self._versions)
        configured = self._check("configuration", self._configuration)
        if configured:
            self._check("directories", self._directories)
            self._check("suffix target", self._suffix_target)
            self._check("cicd_bot", self._bundled_bot)
            self._check("workflows", self._workflows)
            self._check("connection", self._connection)
            try:
                if self._check("state", self._state):
                    self._look_into_project()
                    if self.state is not None:
                        self._look_into_state()
            finally:
                if self.state is not None:
                    self.state.close()
        spark_next = configured and is_spark(self.context, self.context.gateway)
        if spark_next:
            # A session would wait a minute for a master that is not there.
            spark_next = self._check("where Spark runs", self._where_spark_runs)
        awake = self._check("java", self._java) and spark_next
        awake = awake and self._check("spark", self._spark)
        if awake and self._check("executors", self._executors):
            views = spark_checks.views_of_prod(self.context, self.prod)
            self._check("catalogs", lambda: self._add(spark_checks.catalogs(self.context)))
            self._check("views", lambda: self._add(spark_checks.views(self.context, views)))
            self._check("listing", lambda: self._add(spark_checks.listing(self.context, views)))
            self._check("rights", lambda: self._add(spark_checks.rights(self.context, views)))
        return DoctorDocument(
            checks=self.checks,
            configured=configured,
            seconds=round(self.ports.clock.now() - started, 3),
            timings=dict(self.ports.clock.phases),
            versions=self._stamp(),
        )

    def _check(self, name: str, action: Callable[[], None]) -> bool:
        """Runs one check; returns whether what comes after it can rely on it."""
        self.ports.progress("doctor", name)
        before = len(self.checks)
        try:
            with self.ports.clock.phase(name):
                action()
        except BotError as error:
            self._tell(name, "fail", error.message, error.hint)
        except Exception as error:
            self._tell(name, "fail", sentence(error), "The log has the whole story.")
            sys.excepthook(type(error), error, error.__traceback__)
        return all(check.status != "fail" for check in self.checks[before:])

    def _tell(self, name: str, status: CheckStatus, message: str, fix: str | None = None) -> None:
        shown = shortened(Places({self.place.repository: ""}).text(message), _LONGEST)
        limited = fix[:_LONGEST] if fix else None
        self._add(ProjectCheck(name=name, status=status, message=shown, fix=limited))

    def _add(self, check: ProjectCheck) -> None:
        self.checks.append(check)

    def _stamp(self) -> Versions:
        versions = versions_of(None)
        if self.facts is None:
            return versions
        return versions.model_copy(
            update={
                "state_schema": self.facts.schema_version,
                "state_sqlmesh": self.facts.sqlmesh_version,
                "state_engine": self.facts.engine,
            }
        )

    def _versions(self) -> None:
        self._add(validation.versions(versions_of(None)))

    def _configuration(self) -> None:
        configs, _ = configure(self.place, self.ports.on_spark_start, clock=self.ports.clock)
        self.context = new_context(configs, self.place)
        self._add(validation.configuration(self.context, self.place))

    def _directories(self) -> None:
        self._add(validation.directories(self.place))

    def _suffix_target(self) -> None:
        found = validation.suffix_target(self.context)
        if found is not None:
            self._add(found)

    def _bundled_bot(self) -> None:
        for line in bundled_bot.lines(self.context, self.place.projects[0]):
            self._add(line)

    def _workflows(self) -> None:
        found = check(self.place.repository)
        if found is not None:
            self._add(found)
        for missing in check_missing(self.place.repository):
            self._add(missing)

    def _connection(self) -> None:
        self._add(validation.connection(self.context))

    def _state(self) -> None:
        self.state, self.facts = opening.open_state(self.context, self.place, write=False)
        exists = self.state is not None
        self._add(validation.state(self.context, exists=exists, facts=self.facts))

    def _look_into_project(self) -> None:
        """Loads the models, which runs the project's code, and checks them as a review does."""
        if not self._check("models", self._models):
            return
        names = Names(self.context.default_catalog, self.context.default_dialect)
        repository = self.place.repository
        self._check("merges", lambda: self._merges(names))
        self._check(
            "lint",
            lambda: self._add(validation.lint_line(checks.lint(self.context, names, repository))),
        )
        self._check(
            "format",
            lambda: self._add(
                validation.format_line(checks.formatting(self.context, None, repository))
            ),
        )
        self._check(
            "unit tests",
            lambda: self._add(validation.tests_line(run_unit_tests(self.context, repository))),
        )

    def _models(self) -> None:
        if self.state is not None:
            sqlmesh_compat.give_state(self.context, self.state)
        else:
            sqlmesh_compat.merge_nothing_from_state(self.context)
        load(self.context, self.ports.clock.phase("load"), self.place.repository)
        pointers = self._list_lfs_pointers()
        if pointers:
            self._tell(
                "models",
                "fail",
                f"{len(self.context.models)} models load, and of {names(pointers)} the checkout "
                "holds only a pointer of Git LFS, whose text would be loaded as data",
                f"See to it that {FIX}.",
            )
            return
        self._tell("models", "ok", f"{len(self.context.models)} models load")

    def _merges(self, names: Names) -> None:
        gateways = list_gateways(self.context.config, self.context.gateway)
        found = {
            names.of(name): why
            for name, model in self.context.models.items()
            if (why := why_no_merge(model, gateways)) is not None
        }
        if not found:
            self._tell("merges", "ok", "no model merges into a table without MERGE")
            return
        self._tell(
            "merges",
            "warn",
            f"SQLMesh merges into {', '.join(sorted(found))}, and {found[min(found)]}, as far as "
            "the configuration says: the first batch works and each later one fails.",
            "Give the models, or the model defaults, a `table_format` that takes a MERGE "
            "(iceberg) or `storage_format delta`, or choose another kind.",
        )

    def _list_lfs_pointers(self) -> list[str]:
        """The seeds, and the files that the load has opened, of which only a pointer is here."""
        seeds = list_seed_files(self.context.models.values())
        found = list_pointers([*load_trace.opened(), *seeds])
        return [file_name(path, self.place.repository) for path in found]

    def _look_into_state(self) -> None:
        catalog, dialect = (
            sqlmesh_compat.default_catalog(self.context),
            self.context.default_dialect,
        )
        state, prefix = self.state, self.request.environment_prefix

        self._check("prod", lambda: self._add(state_checks.prod(state)))
        self._check("gaps", lambda: self._add(state_checks.gaps(state, catalog, dialect)))
        self._check("state size", lambda: self._add(state_checks.size(state)))
        self._check("environments", lambda: self._add(state_checks.environments(state, prefix)))
        self._check("estimates", lambda: self._add(state_checks.estimates(state)))
        self.prod = state.get_environment(c.PROD)
        if self.context.models:
            self._check("python", self._python)

    def _python(self) -> None:
        found = state_checks.python(self.state, self.context, platform.python_version())
        if found is not None:
            self._add(found)

    def _java(self) -> None:
        self._add(spark_checks.java_runtime(self.ports.environ, self.ports.python))

    def _where_spark_runs(self) -> None:
        settings = sqlmesh_compat.spark_settings(self.context)
        network = self.ports.network
        for line in spark_network.checks(settings, self.ports.environ, network):
            self._add(line)
        for line in spark_checks.checks(
            settings, self.ports.environ, java.spark_jars(self.ports.environ)
        ):
            self._add(line)

    def _executors(self) -> None:
        found = spark_checks.executors(self.context)
        if found is not None:
            self._add(found)

    def _spark(self) -> None:
        self._add(spark_checks.spark(self.context, self.ports.clock.now))
