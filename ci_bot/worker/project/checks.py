"""Project checks of a review: the project's own linter, its formatter and its unit tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ci_bot.contracts.documents.plan import (
    Finding,
    FormatCheck,
    LintCheck,
)
from ci_bot.secrets.cutting import shortened
from ci_bot.worker import compat
from ci_bot.worker.words.names import Names, file_name_or_last

MAX_EVIDENCE = 1_000
MAX_FORMATTED = 50
LintStatus = Literal["passed", "failed", "warnings", "off", "not_run"]


def lint(context: Any, names: Names, repository: Path) -> LintCheck:
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
                model=names.of(violation.model.fqn),
                path=file_name_or_last(path, repository),
                line=line,
                evidence=shortened(violation.violation_msg, MAX_EVIDENCE),
                clears_when=f"The linter rule `{violation.rule.name}` is satisfied.",
            )
        )
    errors = sum(violation.violation_type == "error" for violation in violations)
    warnings = len(violations) - errors
    status: LintStatus = "failed" if errors else "warnings" if warnings else "passed"
    return LintCheck(status=status, errors=errors, warnings=warnings, findings=findings)


def formatting(context: Any, touched: set[Path] | None, repository: Path) -> FormatCheck:
    """Which SQL files `sqlmesh format` would change; of `touched`, or of all where that is None.

    Nothing is written. Formatting a file parses it anew, so that a pull request which touches
    hundreds has the first of them checked, and says so.
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
            if compat.needs_format(context, nodes[path]):
                unformatted.append(str(file_name_or_last(path, repository)))
        except Exception:
            # SQLMesh's formatter refuses some files that its loader takes; a macro's, for example.
            unknown += 1
    return FormatCheck(
        status="needs_format" if unformatted else "passed",
        checked=len(checked) - unknown,
        left_out=len(files) - len(checked) + unknown,
        files=unformatted,
    )
