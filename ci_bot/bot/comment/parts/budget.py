"""Cutting by importance: what a reader needs least goes first, and what went is always counted.

A comment holds 65,536 characters and a step summary over one megabyte is dropped whole, so both
have a budget in bytes. The frame (marker, decision, reasons, glance, next step) is never cut.
Sections are shortened in their given order down to their reserve, then in a second and third round
below it; a section only ever gives up whole rows, lines or nodes, so fences and `<details>` close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ci_bot.bot.comment.text.markdown import SafeMarkdown

COMMENT_BYTES = 60_000
SUMMARY_BYTES = 1_000_000
_ROUNDS = (1.0, 0.25, 0.0)


@dataclass(frozen=True)
class Piece:
    """A section as far as it fits; `total` counts its items, of which `shown` are in the text."""

    text: SafeMarkdown
    shown: int
    total: int

    @property
    def size(self) -> int:
        return len(self.text.encode())

    @property
    def is_cut(self) -> bool:
        return self.shown < self.total


EMPTY = Piece(SafeMarkdown(""), 0, 0)


class Section(Protocol):
    """A part of the text that can be shortened."""

    @property
    def name(self) -> str: ...

    def fit(self, budget: int | None) -> Piece:
        """The best version of at most `budget` bytes (plus a note of one line, if it was cut)."""
        ...


@dataclass(frozen=True)
class Share:
    """A section and the bytes that it keeps in the first round, in a comment of 60,000."""

    section: Section
    reserve: int


def first_pieces(shares: Sequence[Share], budget: int | None) -> dict[str, Piece]:
    """Every section as if it had the whole budget to itself."""
    return {share.section.name: share.section.fit(budget) for share in shares}


def fit(
    frame: int, shares: Sequence[Share], pieces: dict[str, Piece], budget: int | None
) -> dict[str, Piece]:
    """`pieces`, shortened until they fit beside `frame` bytes, in the order of `shares`."""
    if budget is None:
        return pieces
    fitted = dict(pieces)
    scale = budget / COMMENT_BYTES
    total = frame + sum(piece.size for piece in fitted.values())
    for part in _ROUNDS:
        for share in shares:
            if total <= budget:
                return fitted
            name = share.section.name
            size = fitted[name].size
            target = max(int(share.reserve * scale * part), size - (total - budget))
            if size <= target:
                continue
            # A cut adds its note; without this margin the note itself would go over.
            fitted[name] = share.section.fit(max(target - NOTE_BYTES, 0))
            total += fitted[name].size - size
    return fitted


def cut_names(pieces: dict[str, Piece]) -> list[str]:
    """The sections that are not complete."""
    return [name for name, piece in pieces.items() if piece.is_cut]


NOTE_BYTES = 400


def note(shown: int, total: int, noun: str, full_report: SafeMarkdown) -> SafeMarkdown:
    """What a cut leaves behind: never silence."""
    counted = f"{shown:,} of {total:,} {noun} shown" if shown else f"{total:,} {noun} left out here"
    return SafeMarkdown(f"<sub>{counted}; all are in {full_report}.</sub>")
