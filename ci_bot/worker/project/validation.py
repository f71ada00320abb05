"""The checks of a project and its surroundings that a review and the doctor share.

Nothing here starts Spark or changes anything. The parts are those of a project validation report:
versions, configuration, directories, connections, state.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh.core.config import DuckDBConnectionConfig, EnvironmentSuffixTarget

from ci_bot.protocol.base import Versions
from ci_bot.protocol.plan import (
    TESTS_HINT,
    CheckStatus,
    FormatCheck,
    LintCheck,
    ProjectCheck,
    TestsCheck,
)
from ci_bot.protocol.review_report import ProdNotFound
from ci_bot.protocol.supported_versions import PYSPARK_VERSIONS_TEXT, was_tried
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.project.configuration import ProjectPlace, display_path, gateway_is_spark
from ci_bot.worker.project.opening import OpenProject, StateFacts

if TYPE_CHECKING:
    from sqlmesh.core.context import Context

SUFFIX_TARGET_HINT = "Use `schema` (the default) or `table`."

_SHOWN = 5
# The directories that SQLMesh reads. Only models is required; a line names the others.
_DIRECTORIES = ("models", "seeds", "audits", "tests", "macros")
_SOURCES = (".sql", ".py", ".csv", ".yaml", ".yml")


def check_versions(found: Versions) -> ProjectCheck:
    """Checks whether this release was tested with the installed versions."""
    shown = f"Python {platform.python_version()}, SQLMesh {found.sqlmesh}, "
    shown += f"PySpark {found.pyspark or 'not installed'}"
    status: CheckStatus = "ok"
    fix = None
    if found.pyspark is None:
        status = "warn"
        fix = "A review needs none. For all else: `pip install 'pyspark>=3.4,<4.2'`."
    elif not was_tried(found.pyspark):
        status = "warn"
        fix = (
            f"This release was tried with PySpark {PYSPARK_VERSIONS_TEXT}. "
            "Pin one of them in `requirements`."
        )
    return ProjectCheck(name="versions", status=status, message=shown, fix=fix)


def check_configuration(context: Context, place: ProjectPlace) -> ProjectCheck:
    """Reports a configuration as valid: SQLMesh made a context of it."""
    gateway = context.selected_gateway or "the only one"
    names = ", ".join(display_path(_config_file(path), place) for path in place.projects)
    return ProjectCheck(name="configuration", status="ok", message=f"{names}, gateway {gateway}")


def _config_file(project: Path) -> Path:
    """Returns the project's configuration file; SQLMesh refuses a project with more than one."""
    names = [f"config.{suffix}" for suffix in ("yaml", "yml", "py")]
    return next((project / name for name in names if (project / name).is_file()), project)


def check_directories(place: ProjectPlace) -> ProjectCheck:
    """Lists which of SQLMesh's directories hold files; warns of a project without models."""
    counts = dict.fromkeys(_DIRECTORIES, 0)
    for path in place.projects:
        for name in _DIRECTORIES:
            folder = path / name
            counts[name] += sum(
                file.suffix in _SOURCES and not file.name.startswith("__")
                for file in (folder.rglob("*") if folder.is_dir() else ())
            )
    held = [
        f"{name}/ {count} {'file' if count == 1 else 'files'}"
        for name, count in counts.items()
        if count
    ]
    empty = [f"{name}/" for name, count in counts.items() if not count]
    message = ", ".join(held) or "no models, seeds, audits, tests or macros"
    if held and empty:
        message += f"; nothing in {', '.join(empty)}"
    if not counts["models"]:
        fix = "Set the input `project` to the directory that holds `models/`."
    elif not counts["tests"]:
        fix = "Add unit tests: `sqlmesh create_test MODEL --query ...` writes the first one."
    else:
        return ProjectCheck(name="directories", status="ok", message=message)
    return ProjectCheck(name="directories", status="warn", message=message, fix=fix)


def check_suffix_target(context: Context) -> ProjectCheck | None:
    """Reports a suffix target that does not work on Spark; None for the others."""
    if context.config.environment_suffix_target is not EnvironmentSuffixTarget.CATALOG:
        return None
    return ProjectCheck(
        name="suffix target",
        status="fail",
        message="`environment_suffix_target: catalog` does not work on Spark, which cannot create "
        "or drop catalogs.",
        fix=SUFFIX_TARGET_HINT,
    )


def check_connection(context: Context) -> ProjectCheck:
    """Reports the warehouse's engine as configured, without a connection."""
    engine = context.config.get_connection(context.gateway).type_
    if gateway_is_spark(context, context.gateway):
        catalog = sqlmesh_compat.read_default_catalog(context)
        message = f"{engine}, default catalog {catalog}"
        return ProjectCheck(name="connection", status="ok", message=message)
    return ProjectCheck(
        name="connection",
        status="fail",
        message=f"The gateway's engine is {engine}, and plans are applied on Spark here.",
        fix="Choose a gateway whose connection has `type: spark`.",
    )


def check_state(
    context: Context, *, exists: bool, facts: StateFacts, missing: ProdNotFound | None = None
) -> ProjectCheck:
    """Reports the state database that was opened, or that there is none yet.

    Args:
        missing: Why the loaded project has no prod in this state; None if it has one.
    """
    if exists and missing is not None:
        return ProjectCheck(
            name="state", status="warn", message=missing.describe_absence(), fix=missing.hint
        )
    if not exists:
        return ProjectCheck(
            name="state",
            status="warn",
            message=f"There is no SQLMesh state ({facts.engine}) yet.",
            fix="Build prod with `sqlmesh plan`; until then a review shows everything as new.",
        )
    shown = f"{facts.engine}, schema version {facts.schema_version}, "
    shown += f"written by SQLMesh {facts.sqlmesh_version}"
    if isinstance(
        sqlmesh_compat.find_state_connection(context.config, context.gateway),
        DuckDBConnectionConfig,
    ):
        return ProjectCheck(
            name="state",
            status="warn",
            message=f"{shown}; one run at a time can open it",
            fix="A state that several runs share belongs on a server such as PostgreSQL.",
        )
    return ProjectCheck(name="state", status="ok", message=shown)


def check_opened_project(
    opened: OpenProject, place: ProjectPlace, found: Versions
) -> list[ProjectCheck]:
    """Runs the checks of a review, each after those that it depends on."""
    context = opened.context
    suffix = check_suffix_target(context)
    if opened.base_failures:
        about_state = ProjectCheck(
            name="state",
            status="not_run",
            message="Not opened: the base branch's project should stand for prod, and does not "
            "load.",
        )
    elif opened.baseline == "base-branch":
        about_state = ProjectCheck(
            name="state",
            status="not_run",
            message="Not opened: the base branch's project counts as prod.",
        )
    else:
        about_state = check_state(
            context,
            exists=opened.state.schema_version > 0,
            facts=opened.state,
            missing=opened.prod_not_found,
        )
    return [
        check_versions(found),
        check_configuration(context, place),
        check_directories(place),
        *([suffix] if suffix else []),
        check_connection(context),
        about_state,
    ]


def summarize_lint_check(check: LintCheck) -> ProjectCheck:
    """Summarizes the linter's result in one line."""
    if check.status == "off":
        return ProjectCheck(
            name="lint",
            status="warn",
            message="the project's linter is off",
            fix="Switch it on: `linter: {enabled: true, rules: ALL}` in the configuration.",
        )
    named = [f"{finding.rule} in {finding.model}" for finding in check.findings]
    return _make_check(
        "lint",
        failing=check.errors > 0,
        warning=check.warnings > 0,
        message=f"{check.errors} errors, {check.warnings} warnings",
        named=named,
        fix="`sqlmesh lint` shows each with its place.",
    )


def summarize_tests_check(check: TestsCheck) -> ProjectCheck:
    """Summarizes the unit tests' result in one line. A project without tests is no success."""
    if check.status == "none":
        return ProjectCheck(
            name="unit tests",
            status="warn",
            message="there are none",
            fix="`sqlmesh create_test MODEL --query ...` writes the first one.",
        )
    return _make_check(
        "unit tests",
        failing=check.status == "failed",
        warning=check.status == "not_run",
        message=f"{check.failed} of {check.run} failed" if check.failed else f"{check.run} passed",
        named=[failure.name for failure in check.failures],
        fix=TESTS_HINT,
    )


def summarize_format_check(check: FormatCheck) -> ProjectCheck:
    """Summarizes what `sqlmesh format` would change in one line."""
    return _make_check(
        "format",
        failing=False,
        warning=check.status != "passed",
        message=f"{len(check.files)} of {check.checked} files need formatting",
        named=check.files,
        fix="Run `sqlmesh format`.",
    )


def _make_check(
    name: str, *, failing: bool, warning: bool, message: str, named: list[str], fix: str
) -> ProjectCheck:
    shown = f"{message}: {', '.join(named[:_SHOWN])}" if named else message
    if len(named) > _SHOWN:
        shown += f" and {len(named) - _SHOWN} more"
    if not failing and not warning:
        return ProjectCheck(name=name, status="ok", message=shown)
    return ProjectCheck(name=name, status="fail" if failing else "warn", message=shown, fix=fix)
