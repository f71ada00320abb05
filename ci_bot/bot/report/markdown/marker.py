"""The hidden first line of the sticky comment: a JSON record inside one HTML comment. Pure.

The record travels through text that others can write, so both directions are careful. Encoding
leaves no character in it that could end the HTML comment, start markup, or mean something to
GitHub's filters of mentions and references. Decoding takes any text and gives a record or None.

A comment that can be decoded is not yet ours: anybody can paste a marker.
`ci_bot.bot.github.sticky_posts` checks who wrote it, and for which pull request and project.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from ci_bot.protocol.base import PlanId, Sha
from ci_bot.protocol.comment import Marker, PlanHistoryEntry
from ci_bot.protocol.plan import Decision, Window

OPENING = "<!-- sqlmesh-plan-review "
CLOSING = " -->"
LONGEST = 32_000  # characters; twenty long history entries stay below it
_NOTE = "<!-- sqlmesh-plan-review-note "

# Every other character is written as \u00XX. Such characters occur only inside JSON strings, where
# that spelling means the same, so a JSON reader needs no special handling.
_OUTSIDE_OF_PLAIN = re.compile(r'[^A-Za-z0-9{}\[\]":,._/\\ ]')


def encode_comment_marker(marker: Marker) -> str:
    """Returns the marker as one line, to be the first line of the comment's body.

    If it would be longer than `LONGEST`, the oldest entries of its history (the first ones) are
    left out.
    """
    line = _encode_document(marker)
    while len(line) > LONGEST and marker.history:
        marker = marker.model_copy(update={"history": marker.history[1:]})
        line = _encode_document(marker)
    return line


def _encode_document(marker: Marker) -> str:
    record = {"v": marker.v, **marker.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
    return (
        OPENING + escape_json_of_comment_marker(json.dumps(record, separators=(",", ":"))) + CLOSING
    )


def escape_json_of_comment_marker(text: str) -> str:
    """Escapes ASCII JSON, so that no character in it has a meaning outside of JSON."""
    return _OUTSIDE_OF_PLAIN.sub(lambda hit: f"\\u{ord(hit[0]):04x}", text)


def mark_news_comment(body: str, key: str) -> str:
    """Returns a short comment with the project's mark at its end, for a later one to fold it."""
    return f"{body.rstrip()}\n\n{_make_news_mark(key)}\n"


def is_claim_of_news_comment(body: str, key: str) -> bool:
    """Whether a body claims to be such a comment of this project; anybody can paste the mark."""
    return body.rstrip().endswith(f"\n{_make_news_mark(key)}")


def _make_news_mark(key: str) -> str:
    return _NOTE + escape_json_of_comment_marker(json.dumps(key)) + CLOSING


def decode_comment_marker(body: str) -> Marker | None:
    """Reads the marker in a body's first line; None if there is none that can be trusted.

    It returns None for unknown versions, unknown keys, wrong types and text of any other kind: so
    the bot leaves a comment alone that a later release, or somebody else, wrote.
    """
    if not body.startswith(OPENING):
        return None
    line = re.split(r"[\r\n]", body[: LONGEST + 2], maxsplit=1)[0].rstrip(" \t")
    if len(line) > LONGEST or not line.endswith(CLOSING):
        return None
    text = line[len(OPENING) : -len(CLOSING)]
    if "--" in text or "<" in text or ">" in text:
        return None  # written by something that does not escape as `encode` does
    try:
        return Marker.model_validate_json(text)
    except (ValidationError, ValueError, RecursionError):
        return None


@dataclass(frozen=True, kw_only=True)
class CommentMarkerFacts:
    """The marker's facts about the plan in the comment; each is None if there is none."""

    head: Sha | None = None
    base: Sha | None = None
    merge: Sha | None = None
    plan: PlanId | None = None
    window: Window | None = None
    decision: Decision | None = None
    report_sha256: str | None = None

    @classmethod
    def from_marker(cls, marker: Marker | None) -> CommentMarkerFacts:
        """Returns the facts that an earlier run wrote."""
        if marker is None:
            return cls()
        return cls(
            head=marker.head,
            base=marker.base,
            merge=marker.merge,
            plan=marker.plan,
            window=marker.window,
            decision=marker.decision,
            report_sha256=marker.report_sha256,
        )


def list_plans_before_in_comment(
    marker: Marker | None,
    plan: PlanId | None,
    history: Sequence[PlanHistoryEntry] | None = None,
) -> list[PlanHistoryEntry]:
    """Lists the earlier plans of a pull request, the oldest first.

    Args:
        marker: The marker that an earlier run wrote.
        plan: The current plan, which is not an earlier one.
        history: The plans before `marker`; if None, the marker's own history.
    """
    if marker is None:
        return list(history or ())
    found = list(marker.history if history is None else history)
    if marker.plan is not None and marker.plan != plan:
        found.append(
            PlanHistoryEntry(
                at=marker.valid_at,
                head=marker.head,
                plan=marker.plan,
                decision=marker.decision,
                run=str(marker.run_id),
            )
        )
    return found
