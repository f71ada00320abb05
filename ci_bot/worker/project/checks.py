"""Project checks of a review: the project's own linter, its formatter and its unit tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ci_bot.protocol.plan import Finding, FormatCheck, LintCheck
from ci_bot.redaction import shorten_redacted
from ci_bot.worker import sqlmesh_compat
from ci_bot.worker.messages import ModelNames, file_name_or_last

if TYPE_CHECKING:
    from sqlmesh.core.config import Config
    from sqlmesh.core.context import Context

MAX_EVIDENCE = 1_000

MAX_FORMATTED = 50

LintStatus = Literal["passed", "failed", "warnings", "off", "not_run"]


def lint_project(context: Context, names: ModelNames, repository: Path) -> LintCheck:
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
                path=file_name_or_last(path, repository),
                line=line,
                evidence=shorten_redacted(violation.violation_msg, MAX_EVIDENCE),
                clears_when=f"The linter rule `{violation.rule.name}` is satisfied.",
            )
        )
    errors = sum(violation.violation_type == "error" for violation in violations)
    warnings = len(violations) - errors
    status: LintStatus = "failed" if errors else "warnings" if warnings else "passed"
    return LintCheck(status=status, errors=errors, warnings=warnings, findings=findings)


def check_formatting(context: Context, touched: set[Path] | None, repository: Path) -> FormatCheck:
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
            if sqlmesh_compat.needs_format(context, nodes[path]):
                unformatted.append(str(file_name_or_last(path, repository)))
        except Exception:
            # SQLMesh's formatter refuses some files that its loader accepts, such as a macro's.
            unknown += 1
    return FormatCheck(
        status="needs_format" if unformatted else "passed",
        checked=len(checked) - unknown,
        left_out=len(files) - len(checked) + unknown,
        files=unformatted,
    )


# What the configurations of a run's projects say about how plans are made.


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


def plan_settings(configs: Mapping[Path, Config]) -> PlanSettings:
    """Reads the settings that hold: the first project's if there are several, as SQLMesh does.

    Args:
        configs: the configurations by directory, in the order in which the projects were named.
    """
    (_, config), *others = configs.items()
    bot = sqlmesh_compat.list_written_bot_settings(config)
    unread = {
        f"{BOT}.{key}": path.name
        for path, other in others
        for key, value in sqlmesh_compat.list_written_bot_settings(other).items()
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
