"""How unit tests and linter ended, in words that comment, page and terminal share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.report.model import words
from ci_bot.protocol.plan import LintCheck, TestsCheck

CheckResult = Literal["ok", "warn", "fail", "not_run"]

MARKS: dict[CheckResult, str] = {"ok": "✅", "warn": "⚠️", "fail": "❌", "not_run": "⬜"}


@dataclass(frozen=True)
class CheckWords:
    """How a check ended, and a few words about it."""

    result: CheckResult
    text: str

    def in_comment(self) -> str:
        """The words behind their mark; a check that did not run has none there."""
        return self.text if self.result == "not_run" else f"{MARKS[self.result]} {self.text}"


def describe_tests(check: TestsCheck) -> CheckWords:
    """How the unit tests ended, with how many of them fail on the base branch, too."""
    amount = words.format_count(check.run, "unit test")
    if check.status == "passed":
        return CheckWords("ok", amount)
    if check.status == "failed":
        known = check.failed == check.failed_before
        before = "as on the base branch"
        if not known:
            before = f"{words.format_number(check.failed_before)} on the base branch, too"
        rest = f", {before}" if check.failed_before else ""
        text = f"{words.format_number(check.failed)} of {amount} failed{rest}"
        return CheckWords("warn" if known else "fail", text)
    return CheckWords(
        "not_run", "no unit tests" if check.status == "none" else "unit tests not run"
    )


def describe_lint(check: LintCheck) -> CheckWords:
    """How the linter ended."""
    return {
        "passed": CheckWords("ok", "lint"),
        "failed": CheckWords("fail", words.format_count(check.errors, "lint error")),
        "warnings": CheckWords("warn", words.format_count(check.warnings, "lint warning")),
        "off": CheckWords("not_run", "lint is off"),
        "not_run": CheckWords("not_run", "lint not run"),
    }[check.status]
