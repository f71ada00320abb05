"""The checks of a project and its surroundings, for a review and the doctor.

The project's own linter, formatter and unit tests; versions, configuration, directories,
connections, state. Nothing here starts Spark or changes anything.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqlmesh.core.config import DuckDBConnectionConfig, EnvironmentSuffixTarget

from ci_bot.protocol.base import Versions
from ci_bot.protocol.plan import (
    TESTS_HINT,
    CheckStatus,
    Finding,
    FormatCheck,
    LintCheck,
    ProjectCheck,
    TestsCheck,
)
from ci_bot.protocol.review_report import ProdNotFound
from ci_bot.protocol.supported_versions import PYSPARK_VERSIONS_TEXT, was_tried
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import MessageNames, name_file_in_message_or_last_part
from ci_bot.worker.project.configuration import (
    ProjectPlace,
    display_project_path,
    is_spark_gateway_of_project,
)
from ci_bot.worker.project.opening import OpenProject, ProjectStateFacts

if TYPE_CHECKING:
    from sqlmesh.core.config import Config
    from sqlmesh.core.context import Context


MAX_EVIDENCE = 1_000

MAX_FORMATTED = 50

LintStatus = Literal["passed", "failed", "warnings", "off", "not_run"]


def lint_project(context: Context, names: MessageNames, repository: Path) -> LintCheck:
    """Runs the project's own linter over every model, as `sqlmesh plan` would."""
    if not any(config.linter.enabled for config in context.configs.values()):
        return LintCheck(status="off")
    violations = context.lint_models(raise_on_error=False)
    findings = []
    for violation in violations:
        path = violation.model._path
        error = violation.violation_type == "error"
        line = violation.violation_range.start.line + 1 if violation.violation_range else None
        findings.append(
            Finding(
                rule=violation.rule.name,
                severity="blocker" if error else "low",
                model=names.short_name(violation.model.fqn),
                path=name_file_in_message_or_last_part(path, repository),
                line=line,
                evidence=shorten_redacted(violation.violation_msg, MAX_EVIDENCE),
                clears_when=f"The linter rule `{violation.rule.name}` is satisfied.",
            )
        )
    errors = sum(violation.violation_type == "error" for violation in violations)
    warnings = len(violations) - errors
    status: LintStatus = "failed" if errors else "warnings" if warnings else "passed"
    return LintCheck(status=status, errors=errors, warnings=warnings, findings=findings)


def check_project_formatting(
    context: Context, touched: set[Path] | None, repository: Path
) -> FormatCheck:
    """Lists the SQL files that `sqlmesh format` would change, among `touched`, or all if None.

    Writes nothing. Formatting parses each file again, so only the first `MAX_FORMATTED` files are
    checked, and the result says so.
    """
    nodes = {
        path: node
        for node in [*context.models.values(), *context.standalone_audits.values()]
        if (path := node._path) is not None
        and path.suffix == ".sql"
        and node.formatting is not False
        and (touched is None or path in touched)
    }
    files = sorted(nodes)
    checked = files if touched is None else files[:MAX_FORMATTED]
    unformatted, unknown = [], 0
    for path in checked:
        try:
            if sqlmesh_compat.needs_sqlmesh_format(context, nodes[path]):
                unformatted.append(str(name_file_in_message_or_last_part(path, repository)))
        except Exception:
            # SQLMesh's formatter refuses some files that its loader accepts, such as a macro's.
            unknown += 1
    return FormatCheck(
        status="needs_format" if unformatted else "passed",
        checked=len(checked) - unknown,
        left_out=len(files) - len(checked) + unknown,
        files=unformatted,
    )


# The settings in the configurations of a run's projects that decide how plans are made.


BOT = "cicd_bot"
# The keys of `cicd_bot:` that reach a plan.
OF_A_PLAN = (
    "auto_categorize_changes",
    "default_pr_start",
    "default_pr_preview_start",
    "pr_min_intervals",
    "pr_preview_min_intervals",
    "skip_pr_backfill",
    "pr_include_unmodified",
    "forward_only_branch_suffix",
)


@dataclass(frozen=True)
class PlanSettings:
    """The settings of one configuration that change a plan.

    Attributes:
        forward_only, include_unmodified: keys of `plan:`.
        bot: the keys that are written under `cicd_bot:`, which SQLMesh's own bot reads; never its
            defaults.
        notes: one sentence for each setting that is written and has no effect.
    """

    forward_only: bool = False
    include_unmodified: bool = False
    bot: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_plan_settings_of_project(configs: Mapping[Path, Config]) -> PlanSettings:
    """Reads the settings that apply: the first project's if there are several, as SQLMesh does.

    Args:
        configs: the configurations by directory, in the order in which the projects were named.
    """
    (_, config), *others = configs.items()
    bot = sqlmesh_compat.list_written_sqlmesh_bot_settings(config)
    unread = {
        f"{BOT}.{key}": path.name
        for path, other in others
        for key, value in sqlmesh_compat.list_written_sqlmesh_bot_settings(other).items()
        if key in OF_A_PLAN and value != bot.get(key)
    }
    return PlanSettings(
        forward_only=config.plan.forward_only,
        include_unmodified=config.plan.include_unmodified,
        bot=bot,
        notes=tuple(
            f"`{key}` of the project {name} is not read: where several are planned together, the "
            "first one says how."
            for key, name in sorted(unread.items())
        ),
    )


SUFFIX_TARGET_HINT = "Use `schema` (the default) or `table`."

_SHOWN = 5
# The directories that SQLMesh reads. Only models is required; the message names empty ones.
_DIRECTORIES = ("models", "seeds", "audits", "tests", "macros")
_SOURCES = (".sql", ".py", ".csv", ".yaml", ".yml")


def check_versions_for_project(found: Versions) -> ProjectCheck:
    """Checks whether this release was tested with the installed versions."""
    shown = f"Python {platform.python_version()}, SQLMesh {found.sqlmesh}, "
    shown += f"PySpark {found.pyspark or 'not installed'}"
    status: CheckStatus = "ok"
    fix = None
    if found.pyspark is None:
        status = "warn"
        fix = (
            "A review needs none. For all else install the version of your cluster, for example "
            "`pip install 'pyspark<4'`."
        )
    elif not was_tried(found.pyspark):
        status = "warn"
        fix = (
            f"This release was tried with PySpark {PYSPARK_VERSIONS_TEXT}. "
            "Pin one of them in `requirements`."
        )
    return ProjectCheck(name="versions", status=status, message=shown, fix=fix)


def check_project_configuration(context: Context, place: ProjectPlace) -> ProjectCheck:
    """Reports a configuration as valid: SQLMesh made a context from it."""
    gateway = context.selected_gateway or "the only one"
    names = ", ".join(
        display_project_path(_find_config_file_of_project(path), place) for path in place.projects
    )
    return ProjectCheck(name="configuration", status="ok", message=f"{names}, gateway {gateway}")


def _find_config_file_of_project(project: Path) -> Path:
    """Returns the project's configuration file; SQLMesh refuses a project with more than one."""
    names = [f"config.{suffix}" for suffix in ("yaml", "yml", "py")]
    return next((project / name for name in names if (project / name).is_file()), project)


def check_project_directories(place: ProjectPlace) -> ProjectCheck:
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


def check_suffix_target_of_project(context: Context) -> ProjectCheck | None:
    """Reports a suffix target that does not work on Spark; None for any other."""
    if context.config.environment_suffix_target is not EnvironmentSuffixTarget.CATALOG:
        return None
    return ProjectCheck(
        name="suffix target",
        status="fail",
        message="`environment_suffix_target: catalog` does not work on Spark, which cannot create "
        "or drop catalogs.",
        fix=SUFFIX_TARGET_HINT,
    )


def check_connection_of_project(context: Context) -> ProjectCheck:
    """Reports the warehouse's engine as configured, without a connection."""
    engine = context.config.get_connection(context.gateway).type_
    if is_spark_gateway_of_project(context, context.gateway):
        catalog = sqlmesh_compat.read_default_catalog_of_sqlmesh(context)
        message = f"{engine}, default catalog {catalog}"
        return ProjectCheck(name="connection", status="ok", message=message)
    return ProjectCheck(
        name="connection",
        status="fail",
        message=f"The gateway's engine is {engine}, and plans are applied on Spark here.",
        fix="Choose a gateway whose connection has `type: spark`.",
    )


def check_state_of_project(
    context: Context, *, exists: bool, facts: ProjectStateFacts, missing: ProdNotFound | None = None
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
            fix="Build prod with `sqlmesh plan`. Until then a review compares with the base "
            "branch.",
        )
    shown = f"{facts.engine}, schema version {facts.schema_version}, "
    shown += f"written by SQLMesh {facts.sqlmesh_version}"
    if isinstance(
        sqlmesh_compat.find_sqlmesh_state_connection(context.config, context.gateway),
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
    suffix = check_suffix_target_of_project(context)
    if opened.base_failures:
        about_state = ProjectCheck(
            name="state",
            status="not_run",
            message="Not opened: the base branch's project should count as prod, and does not "
            "load.",
        )
    elif opened.baseline == "base-branch":
        about_state = ProjectCheck(
            name="state",
            status="not_run",
            message="Not opened: the base branch's project counts as prod.",
        )
    else:
        about_state = check_state_of_project(
            context,
            exists=opened.state.schema_version > 0,
            facts=opened.state,
            missing=opened.prod_not_found,
        )
    return [
        check_versions_for_project(found),
        check_project_configuration(context, place),
        check_project_directories(place),
        *([suffix] if suffix else []),
        check_connection_of_project(context),
        about_state,
    ]


def summarize_lint_check_of_project(check: LintCheck) -> ProjectCheck:
    """Summarizes the linter's result in one line."""
    if check.status == "off":
        return ProjectCheck(
            name="lint",
            status="warn",
            message="the project's linter is off",
            fix="Switch it on: `linter: {enabled: true, rules: ALL}` in the configuration.",
        )
    named = [f"{finding.rule} in {finding.model}" for finding in check.findings]
    return _make_project_check(
        "lint",
        failing=check.errors > 0,
        warning=check.warnings > 0,
        message=f"{check.errors} errors, {check.warnings} warnings",
        named=named,
        fix="`sqlmesh lint` shows each with its place.",
    )


def summarize_tests_check_of_project(check: TestsCheck) -> ProjectCheck:
    """Summarizes the unit tests' result in one line. A project without tests is no success."""
    if check.status == "none":
        return ProjectCheck(
            name="unit tests",
            status="warn",
            message="there are none",
            fix="`sqlmesh create_test MODEL --query ...` writes the first one.",
        )
    return _make_project_check(
        "unit tests",
        failing=check.status == "failed",
        warning=check.status == "not_run",
        message=f"{check.failed} of {check.run} failed" if check.failed else f"{check.run} passed",
        named=[failure.name for failure in check.failures],
        fix=TESTS_HINT,
    )


def summarize_format_check_of_project(check: FormatCheck) -> ProjectCheck:
    """Summarizes in one line what `sqlmesh format` would change."""
    return _make_project_check(
        "format",
        failing=False,
        warning=check.status != "passed",
        message=f"{len(check.files)} of {check.checked} files need formatting",
        named=check.files,
        fix="Run `sqlmesh format`.",
    )


def _make_project_check(
    name: str, *, failing: bool, warning: bool, message: str, named: list[str], fix: str
) -> ProjectCheck:
    shown = f"{message}: {', '.join(named[:_SHOWN])}" if named else message
    if len(named) > _SHOWN:
        shown += f" and {len(named) - _SHOWN} more"
    if not failing and not warning:
        return ProjectCheck(name=name, status="ok", message=shown)
    return ProjectCheck(name=name, status="fail" if failing else "warn", message=shown, fix=fix)
