"""The observation of a rule, before it becomes a finding with a file and a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ci_bot.protocol.plan import SEVERITIES, Finding, Severity, StatementEffect
from ci_bot.protocol.rules import RuleSpec
from ci_bot.redaction import redact_shapes, shorten_redacted
from ci_bot.worker.messages import MessageNames

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.model import Model

NOT_RETURNED = "which the query does not return"
SAME_COLUMN_ORDER = "all branches list their columns in the same order"
EVIDENCE_LENGTH = 1_000
SUBJECT_LENGTH = 500
# The severities, highest first.

# Makes the sentence about some of the subjects.
DescribeSubjects = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class NamedModel:
    """A model whose name in its file is all that is known, because the project did not load."""

    name: str

    @property
    def fqn(self) -> str:
        return self.name


@dataclass(frozen=True)
class RuleObservation:
    """One observation of a rule.

    Attributes:
        spec: the rule.
        evidence: one sentence with the names and figures that a reader can check, never a secret;
            or a function that makes it from subjects, because some of them may not be new.
        clears: the condition that clears the finding.
        severity: None if it is the rule's default.
        model: the SQLMesh model of the finding, if any.
        subject: the parts of the model or the file: columns, calls with their positions, a
            statement. With rule, model and path they identify the finding, even if its sentence
            changes, so a subject has no figure and no alias. Empty means the whole model or file.
        model_name: its name, if there is no model object because the project did not load.
        anchors: words that find the line in the file, best first.
        path, line: the position, if it is known exactly.
        written_in: an audit of the model with a file of its own.
        effect: the action of a statement on a named object.
    """

    spec: RuleSpec
    evidence: str | DescribeSubjects
    clears: str
    severity: Severity | None = None
    model: Model | NamedModel | None = None
    anchors: tuple[str, ...] = ()
    path: str | None = None
    line: int | None = None
    model_name: str | None = None
    subject: tuple[str, ...] = ()
    effect: StatementEffect | None = None
    written_in: ModelAudit | StandaloneAudit | None = None

    @property
    def weight(self) -> Severity:
        return self.severity or self.spec.severity

    @property
    def described_text(self) -> str:
        """The sentence of the observation, made from its subjects if it is a function."""
        return self.evidence if isinstance(self.evidence, str) else self.evidence(self.subject)


def list_new_observations(
    before: Iterable[RuleObservation], after: Iterable[RuleObservation]
) -> list[RuleObservation]:
    """Lists the observations of `after` that are new, or have a higher severity than before.

    Subjects are counted: a second call of the same kind is new; an observation with only a new
    sentence is not.
    """
    known = [(_list_observation_subjects(one), SEVERITIES.index(one.weight)) for one in before]
    left = sorted(((item, rank) for items, rank in known for item in items), key=lambda x: -x[1])
    found: list[RuleObservation] = []
    for one in sorted(after, key=lambda one: SEVERITIES.index(one.weight)):
        new: list[str] = []
        for item in _list_observation_subjects(one):
            twin = (k for k in left if k[0] == item and k[1] <= SEVERITIES.index(one.weight))
            same = next(twin, None)
            if same is None:
                new.append(item)
            else:
                left.remove(same)
        if new:
            found.append(replace(one, subject=tuple(new)) if one.subject else one)
    return found


def _list_observation_subjects(observation: RuleObservation) -> tuple[str, ...]:
    return observation.subject or ("",)


def make_finding(
    observation: RuleObservation, called: MessageNames, path: str | None, line: int | None
) -> Finding:
    """Makes the finding of an observation, with the model's name for reports."""
    model = getattr(observation.model, "fqn", observation.model_name)
    return Finding(
        rule=observation.spec.id,
        severity=observation.weight,
        model=called.short_name(model) if model is not None else None,
        path=path,
        line=line,
        subject=shorten_redacted(redact_shapes("; ".join(observation.subject)), SUBJECT_LENGTH)
        or None,
        evidence=shorten_redacted(redact_shapes(observation.described_text), EVIDENCE_LENGTH),
        clears_when=shorten_redacted(observation.clears, EVIDENCE_LENGTH),
        effect=observation.effect,
    )


# The line of a finding.
#
# SQLMesh keeps the query of a model as separate text, so the parser's positions are not those of
# the file. Instead, words are searched in the file: that is cheap, and works for a model from any
# cache.


_MODEL_BLOCK = re.compile(r"^[^\S\n]*MODEL\s*\(", re.IGNORECASE | re.MULTILINE)


def find_anchor_line(
    text: str, anchors: Iterable[str], model_name: str | None = None
) -> int | None:
    """Finds the line, from 1, of the first anchor that occurs in `text` as a word.

    Comment lines do not count. Without a hit it is the line that names the model, or the first line
    of the MODEL block, or 1. None if the text is empty.
    """
    lines = text.splitlines()
    for anchor in anchors:
        pattern = _make_word_pattern(anchor)
        for number, line in enumerate(lines, start=1):
            if not line.lstrip().startswith(("--", "#")) and pattern.search(line):
                return number
    if model_name:
        short = re.escape(model_name.replace('"', "").replace("`", ""))
        named = re.compile(rf"(?:name\s*:?\s+|@model\(\s*f?[\"']){short}\b", re.IGNORECASE)
        if found := named.search(text):
            return text.count("\n", 0, found.start()) + 1
    if found := _MODEL_BLOCK.search(text):
        return text.count("\n", 0, found.end()) + 1
    return 1 if lines else None


def find_anchor_columns(line: str, anchors: Iterable[str]) -> tuple[int, int]:
    """Finds start and end of the first anchor in a line; without a hit, of the line's text."""
    for anchor in anchors:
        if found := _make_word_pattern(anchor).search(line):
            return found.span()
    return len(line) - len(line.lstrip()), len(line.rstrip())


def _make_word_pattern(anchor: str) -> re.Pattern[str]:
    escaped = r"\s+".join(re.escape(part) for part in anchor.split())
    left = r"(?<![\w.])" if anchor[:1].isalnum() or anchor[:1] == "_" else ""
    right = r"(?!\w)" if anchor[-1:].isalnum() or anchor[-1:] == "_" else ""
    return re.compile(f"{left}{escaped}{right}", re.IGNORECASE)
