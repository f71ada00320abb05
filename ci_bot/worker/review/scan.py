"""A scan: the findings that the changed files alone give, before the project is loaded.

It runs in a separate process, which reads both versions of the changed files as bytes and parses
them with libraries. Nothing of the project is imported, rendered or evaluated here, and the process
ends before another one loads the project. So no code of a pull request can hide or change its
findings. They are reported even if the plan fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ci_bot.protocol.messages import ScanRequest
from ci_bot.protocol.review_inputs import ScanFacts
from ci_bot.worker.messages import name_file_in_message
from ci_bot.worker.rules import (
    NamedModel,
    RuleInputs,
    find_file_findings,
    find_model_file_findings,
    find_statement_findings,
    make_base_reader,
    make_head_reader,
)

_NAME = re.compile(
    r"MODEL\s*\(\s*(?:[^;]*?,\s*)?name\s+([\w.]+)|@model\(\s*(?:name\s*=\s*)?[\"']([\w.]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ScanRuleInputs(RuleInputs):
    """The inputs of the rules if only the changed files are known."""

    @cached_property
    def models_by_file(self) -> Mapping[str, Sequence[NamedModel]]:
        """The model names in the changed files, as they are written, by file."""
        found: dict[str, list[NamedModel]] = {}
        for path in self.changed_files or ():
            text = self.read_text_after(path) if path.endswith((".sql", ".py")) else None
            name = find_model_name_in_scanned_text(text) if text is not None else None
            if name is not None:
                found[path] = [NamedModel(name)]
        return found


def find_model_name_in_scanned_text(text: str) -> str | None:
    """Finds the name in a MODEL block or @model call by text search, because the file may not
    parse.
    """
    found = _NAME.search(text)
    return next((name for name in found.groups() if name), None) if found else None


def scan_files_before_review(request: ScanRequest, now: Callable[[], float]) -> ScanFacts:
    """Runs the rules on the changed files.

    Args:
        now: Monotonic seconds.
    """
    start = now()
    repository = Path(request.workplace.repository)
    inputs = ScanRuleInputs(
        before={},
        after={},
        repository=repository,
        projects=tuple(name_file_in_message(Path(path), repository) for path in request.projects),
        loaded=False,
        changed_files=tuple(request.changed_files),
        files_before=make_base_reader(request.before_dir, request.unread_files),
        files_after=make_head_reader(request.workplace, request.unread_files),
        copied_from=tuple(request.copied_from),
    )
    return ScanFacts(
        findings=find_file_findings(inputs),
        without_plan=find_model_file_findings(inputs),
        statements=find_statement_findings(inputs),
        seconds=round(now() - start, 3),
    )
