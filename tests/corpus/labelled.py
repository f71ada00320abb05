"""Labelled changes: what a corpus holds, written out as projects, and how a review's report is scored.

A corpus is a directory with `cases/*.yaml` and, for the projects that cases share, `base/<name>`.
The README beside this file says what a case is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SEVERITIES = ("info", "low", "medium", "high", "blocker")
PASSING = frozenset({"go", "no_changes"})
# A finding that is milder than this is a remark and no false alarm.
ALARM_FROM = SEVERITIES.index("medium")
Keywords = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Wanted:
    """A finding that a review must have: a keyword, the model (None: the project), a severity."""

    about: str
    model: str | None
    severity_at_least: str


@dataclass(frozen=True)
class Link:
    """A symbolic link in a project."""

    target: str


@dataclass(frozen=True)
class Case:
    """One change with its label; `base` and `head` are the complete projects, path to content."""

    id: str
    danger: bool
    decisions: tuple[str, ...]
    wanted: tuple[Wanted, ...]
    unwanted: tuple[str, ...]
    base: Mapping[str, bytes | Link]
    head: Mapping[str, bytes | Link]

    def write(self, folder: Path) -> None:
        """Writes FOLDER/base and FOLDER/head."""
        for name, files in (("base", self.base), ("head", self.head)):
            for path, content in files.items():
                target = folder / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(content, Link):
                    target.symlink_to(content.target)
                else:
                    target.write_bytes(content)


def read_cases(corpus: Path) -> list[Case]:
    """All cases of a corpus, by id. Raises KeyError where a case lacks a field."""
    return [_read(path, corpus / "base") for path in sorted((corpus / "cases").glob("*.yaml"))]


def _read(path: Path, bases: Path) -> Case:
    told = yaml.safe_load(path.read_text("utf-8"))
    if told.get("base_project"):
        root = bases / told["base_project"]
        base: dict[str, bytes | Link] = {
            file.relative_to(root).as_posix(): file.read_bytes()
            for file in sorted(root.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }
    else:
        base = {name: _content(value) for name, value in told["base"].items()}
    changed = {name: value for name, value in told["head"].items() if value is not None}
    kept = {name: content for name, content in base.items() if name not in told["head"]}
    return Case(
        id=told["id"],
        danger=told["danger"],
        decisions=tuple(told["expected_decision"]),
        wanted=tuple(Wanted(**finding) for finding in told["expected_findings"]),
        unwanted=tuple(told["must_not_find"]),
        base=base,
        head=kept | {name: _content(value) for name, value in changed.items()},
    )


def _content(value: Any) -> bytes | Link:
    """Text, bytes (`!!binary`), {link: target} for a symbolic link, or {generate: {header, row, rows}}
    for a file too long to store."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict) and "link" in value:
        return Link(value["link"])
    if isinstance(value, dict):
        told = value["generate"]
        numbered = (told["row"].replace("{n}", str(n)) for n in range(1, int(told["rows"]) + 1))
        return ("\n".join([told["header"], *numbered]) + "\n").encode()
    return str(value).encode()


@dataclass(frozen=True)
class Outcome:
    """What a review made of a case; `decision` is None where it gave no report."""

    case: Case
    decision: str | None
    lacking: tuple[Wanted, ...]
    alarms: tuple[str, ...]

    @property
    def right(self) -> bool:
        return self.decision in self.case.decisions

    @property
    def let_through(self) -> bool:
        return self.case.danger and (self.decision is None or self.decision in PASSING)


def outcome(case: Case, report: Mapping[str, Any] | None, keywords: Keywords) -> Outcome:
    """
    Args:
        report: Has `decision` and `risks` ({rule, severity, model, evidence}).
        keywords: Rule id to the keywords of the corpus that it stands for. A rule that is not
            listed stands for every keyword whose words are in its id, or which its evidence says.
    """
    risks = list(report["risks"]) if report else []

    def found(want: Wanted) -> bool:
        least = SEVERITIES.index(want.severity_at_least)
        return any(
            _means(risk, want.about, keywords)
            and _same_model(want.model, risk.get("model"))
            and SEVERITIES.index(risk["severity"]) >= least
            for risk in risks
        )

    heavy = [risk for risk in risks if SEVERITIES.index(risk["severity"]) >= ALARM_FROM]
    return Outcome(
        case=case,
        decision=report["decision"] if report else None,
        lacking=tuple(want for want in case.wanted if not found(want)),
        alarms=tuple(
            word for word in case.unwanted if any(_means(risk, word, keywords) for risk in heavy)
        ),
    )


def _means(risk: Mapping[str, Any], keyword: str, keywords: Keywords) -> bool:
    rule = str(risk["rule"])
    if rule in keywords:
        return keyword in keywords[rule]
    return _words(keyword) <= _words(rule) or keyword in str(risk.get("evidence") or "")


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _same_model(wanted: str | None, seen: str | None) -> bool:
    """Whether a finding is about this model, which a report may name with catalog and quotes."""
    plain = re.sub(r'["`]', "", seen or "").lower()
    return wanted is None or plain == wanted or plain.endswith(f".{wanted}")


def share(part: Iterable[object], whole: Iterable[object]) -> float:
    """How much of a whole a part is; all of it where there is nothing."""
    most = len(list(whole))
    return len(list(part)) / most if most else 1.0
