"""`ci-bot doctor`: every part that the other activities need, looked at and left as it is.

Nothing is created, neither in the state nor in the warehouse. A check that raises is a finding, not
the end, so that one run names everything that is wrong.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlmesh
from sqlmesh.core import constants as c
from sqlmesh.core.config import DuckDBConnectionConfig, EnvironmentSuffixTarget
from sqlmesh.core.config.connection import SparkConnectionConfig

from ci_bot.contracts.base import Versions
from ci_bot.contracts.doctor import CheckStatus, DoctorCheck, DoctorDocument
from ci_bot.contracts.messages import DoctorAsk
from ci_bot.errors import BotError
from ci_bot.worker import compat, doctor_spark, doctor_state, project, review
from ci_bot.worker.problems import sentence
from ci_bot.worker.project import Clock, StateFacts
from ci_bot.worker.review import place_of

_PYSPARK = "3.5."
_LONGEST = 4_000


@dataclass(frozen=True)
class Ports:
    """What a doctor needs from its surroundings; `python` is what Spark will start."""

    clock: Clock
    progress: Callable[[str, str], None]
    on_spark_start: Callable[[], None]
    environ: Mapping[str, str]
    python: str


def doctor(ask: DoctorAsk, ports: Ports) -> DoctorDocument:
    """Looks at everything. Never raises for what it finds."""
    project.read_only_environment()
    return _Doctor(ask, ports).examine()


class _Doctor:
    """One examination; what a check learns is there for those after it."""

    def __init__(self, ask: DoctorAsk, ports: Ports) -> None:
        self.ask = ask
        self.ports = ports
        self.place = place_of(ask, ask.projects)
        self.checks: list[DoctorCheck] = []
        self.context: Any = None
        self.state: Any = None
        self.facts: StateFacts | None = None
        self.prod: Any = None

    def examine(self) -> DoctorDocument:
        started = self.ports.clock.now()
        self._check("versions", self._versions)
        configured = self._check("configuration", self._configuration)
        if configured:
            self._check("suffix target", self._suffix_target)
            self._check("connection", self._connection)
            if self._check("state", self._state) and self.state is not None:
                try:
                    self._look_into_state()
                finally:
                    self.state.close()
        awake = self._check("java", self._java) and configured and self._is_spark()
        if awake and self._check("spark", self._spark):
            views = doctor_spark.views_of_prod(self.context, self.prod)
            self._check("catalogs", lambda: self._add(doctor_spark.catalogs(self.context)))
            self._check("views", lambda: self._add(doctor_spark.views(self.context, views)))
            self._check("rights", lambda: self._add(doctor_spark.rights(self.context, views)))
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
        shown = message.replace(f"{self.place.repository}/", "")[:_LONGEST]
        limited = fix[:_LONGEST] if fix else None
        self._add(DoctorCheck(name=name, status=status, message=shown, fix=limited))

    def _add(self, check: DoctorCheck) -> None:
        self.checks.append(check)

    def _stamp(self) -> Versions:
        versions = review.versions(None)
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
        found = review.versions(None)
        shown = f"Python {platform.python_version()}, SQLMesh {found.sqlmesh}, "
        shown += f"PySpark {found.pyspark or 'not installed'}"
        if found.pyspark is None:
            fix = "Install it beside SQLMesh: `pip install 'pyspark>=3.5,<3.6'`."
            self._tell("versions", "fail", shown, fix)
        elif not sqlmesh.__version__.startswith(compat.SUPPORTED):
            known = " and ".join(f"{version}.*" for version in compat.SUPPORTED)
            fix = f"This release was tested with SQLMesh {known}. Pin that in `requirements`."
            self._tell("versions", "warn", shown, fix)
        elif not found.pyspark.startswith(_PYSPARK):
            fix = "This release was tested with PySpark 3.5. Pin that in `requirements`."
            self._tell("versions", "warn", shown, fix)
        else:
            self._tell("versions", "ok", shown)

    def _configuration(self) -> None:
        configs, _ = project.configure(
            self.place, self.ports.on_spark_start, clock=self.ports.clock
        )
        self.context = project.new_context(configs, self.place)
        gateway = self.context.selected_gateway or "the only one"
        names = ", ".join(project.shown(path, self.place) for path in self.place.projects)
        self._tell("configuration", "ok", f"{names}, gateway {gateway}")

    def _suffix_target(self) -> None:
        """Only one of them is worth a line."""
        target = self.context.config.environment_suffix_target
        if target is EnvironmentSuffixTarget.CATALOG:
            self._tell(
                "suffix target",
                "fail",
                "`environment_suffix_target: catalog` does not work on Spark, which cannot create "
                "or drop catalogs.",
                "Use `schema` (the default) or `table`.",
            )

    def _is_spark(self) -> bool:
        connection = self.context.config.get_connection(self.context.gateway)
        return isinstance(connection, SparkConnectionConfig)

    def _connection(self) -> None:
        connection = self.context.config.get_connection(self.context.gateway)
        if self._is_spark():
            catalog = compat.default_catalog(self.context)
            self._tell("connection", "ok", f"{connection.type_}, default catalog {catalog}")
            return
        self._tell(
            "connection",
            "fail",
            f"The gateway's engine is {connection.type_}, and plans are applied on Spark here.",
            "Choose a gateway whose connection has `type: spark`.",
        )

    def _state(self) -> None:
        self.state, self.facts = project.open_state(self.context, self.place, write=False)
        if self.state is None:
            self._tell(
                "state",
                "warn",
                f"There is no SQLMesh state ({self.facts.engine}) yet.",
                "Build prod with `sqlmesh plan`; until then a review shows everything as new.",
            )
            return
        shown = f"{self.facts.engine}, schema version {self.facts.schema_version}, "
        shown += f"written by SQLMesh {self.facts.sqlmesh_version}"
        connection = compat.state_connection(self.context.config, self.context.gateway)
        if isinstance(connection, DuckDBConnectionConfig):
            fix = "A state that several runs share belongs on a server such as PostgreSQL."
            self._tell("state", "warn", f"{shown}; one run at a time can open it", fix)
        else:
            self._tell("state", "ok", shown)

    def _look_into_state(self) -> None:
        catalog, dialect = compat.default_catalog(self.context), self.context.default_dialect
        state, prefix = self.state, self.ask.environment_prefix

        self._check("prod", lambda: self._add(doctor_state.prod(state)))
        self._check("gaps", lambda: self._add(doctor_state.gaps(state, catalog, dialect)))
        self._check("state size", lambda: self._add(doctor_state.size(state)))
        self._check("environments", lambda: self._add(doctor_state.environments(state, prefix)))
        self.prod = state.get_environment(c.PROD)

    def _java(self) -> None:
        self._add(doctor_spark.java_runtime(self.ports.environ, self.ports.python))

    def _spark(self) -> None:
        self._add(doctor_spark.spark(self.context, self.ports.clock.now))
