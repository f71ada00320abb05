"""A check of a commit as GitHub takes it: data alone, so that a client imports no report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ci_bot.protocol.base import Sha

Conclusion = Literal["success", "neutral", "failure", "action_required"]
AnnotationLevel = Literal["failure", "warning", "notice"]


@dataclass(frozen=True, kw_only=True)
class CheckAnnotation:
    """A finding at its line. Title and message are plain text: GitHub reads no Markdown there."""

    path: str
    line: int
    level: AnnotationLevel
    title: str
    message: str


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    """A check that has ended. `summary` is Markdown, `title` is plain text."""

    name: str
    head: Sha
    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[CheckAnnotation, ...]
    details_url: str | None = None
