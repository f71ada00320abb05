"""What a rule saw, before it becomes a finding with a file and a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from ci_bot.protocol.plan import Finding, Severity, StatementEffect
from ci_bot.protocol.rules import RuleSpec
from ci_bot.redaction import hide_shapes, shorten_redacted
from ci_bot.worker.messages import ModelNames

if TYPE_CHECKING:
    from sqlmesh.core.audit import ModelAudit, StandaloneAudit
    from sqlmesh.core.model import Model

NOT_RETURNED = "which the query does not return"

SAME_COLUMN_ORDER = "all branches list their columns in the same order"

EVIDENCE_LENGTH = 1_000

SUBJECT_LENGTH = 500
# The severities, heaviest first.
_WEIGHTS = get_args(Severity)

# The sentence about some of the subjects.
DescribeSubjects = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class NamedModel:
    """What a file says of its model's name, if nothing could be loaded; no more is known of it."""

    name: str

    @property
    def fqn(self) -> str:
        return self.name


@dataclass(frozen=True)
class RuleObservation:
    """One observation.

    Attributes:
        spec: the rule that saw it.
        evidence: one sentence with the names and figures that a reader can check, never a secret;
            or what makes it of the subjects, where some of them may be known already.
        clears: what has to be true for the finding to go away.
        severity: where it differs from the rule's default.
        model: the SQLMesh model that it is about, if any.
        subject: what of the model or the file it is about: columns, calls at their place, a
            statement. With rule, model and path it identifies the finding, whatever its sentence
            says, so no figure and no alias belongs in here. None of it: the whole model or file.
        model_name: its name, if there is no model object because nothing could be loaded.
        anchors: words to look for in the file, best first, to find the line.
        path, line: where the place is known exactly.
        written_in: what stands in a file of its own beside the model: an audit.
        effect: of a statement, what it does to a named object.
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
        """The sentence."""
        return self.evidence if isinstance(self.evidence, str) else self.evidence(self.subject)


def list_new_observations(
    before: Iterable[RuleObservation], after: Iterable[RuleObservation]
) -> list[RuleObservation]:
    """What of `after` was not there before, or weighs more now.

    Subjects are counted: a second call of the same kind is new, another sentence is not.
    """
    known = [(_list_subjects(one), _WEIGHTS.index(one.weight)) for one in before]
    left = sorted(((item, rank) for items, rank in known for item in items), key=lambda x: -x[1])
    found: list[RuleObservation] = []
    for one in sorted(after, key=lambda one: _WEIGHTS.index(one.weight)):
        new: list[str] = []
        for item in _list_subjects(one):
            twin = (k for k in left if k[0] == item and k[1] <= _WEIGHTS.index(one.weight))
            same = next(twin, None)
            if same is None:
                new.append(item)
            else:
                left.remove(same)
        if new:
            found.append(replace(one, subject=tuple(new)) if one.subject else one)
    return found


def _list_subjects(observation: RuleObservation) -> tuple[str, ...]:
    return observation.subject or ("",)


def make_finding(
    observation: RuleObservation, called: ModelNames, path: str | None, line: int | None
) -> Finding:
    """The contract's form of `observation`, with its model called as everywhere."""
    model = getattr(observation.model, "fqn", observation.model_name)
    return Finding(
        rule=observation.spec.id,
        severity=observation.weight,
        model=called.short_name(model) if model is not None else None,
        path=path,
        line=line,
        subject=shorten_redacted(hide_shapes("; ".join(observation.subject)), SUBJECT_LENGTH)
        or None,
        evidence=shorten_redacted(hide_shapes(observation.described_text), EVIDENCE_LENGTH),
        clears_when=shorten_redacted(observation.clears, EVIDENCE_LENGTH),
        effect=observation.effect,
    )


def quote_names(items: object, limit: int = 5) -> str:
    """`a`, `b` and 3 more."""
    every = sorted({str(item) for item in items})  # type: ignore[attr-defined]
    shown = ", ".join(f"`{item}`" for item in every[:limit])
    rest = len(every) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown


# Finding the line that a reader should look at.
#
# SQLMesh keeps the query of a model as text of its own, so the positions that the parser notes are
# not those of the file. Words are looked up in the file instead: cheap, and right whatever cache
# the model came from.


_MODEL_BLOCK = re.compile(r"^[^\S\n]*MODEL\s*\(", re.IGNORECASE | re.MULTILINE)


def find_anchor_line(
    text: str, anchors: Iterable[str], model_name: str | None = None
) -> int | None:
    """Finds the 1-based line of the first anchor that occurs in `text` as a word.

    Comment lines are passed over. Without a hit it is the line that names the model, or the MODEL
    block's.
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
    """Finds the columns of the first anchor in a line; without one, those of the line's text."""
    for anchor in anchors:
        if found := _make_word_pattern(anchor).search(line):
            return found.span()
    return len(line) - len(line.lstrip()), len(line.rstrip())


def _make_word_pattern(anchor: str) -> re.Pattern[str]:
    escaped = r"\s+".join(re.escape(part) for part in anchor.split())
    left = r"(?<![\w.])" if anchor[:1].isalnum() or anchor[:1] == "_" else ""
    right = r"(?!\w)" if anchor[-1:].isalnum() or anchor[-1:] == "_" else ""
    return re.compile(f"{left}{escaped}{right}", re.IGNORECASE)
