"""Which comment is ours, and whether to write over it. Pure.

Ours is a comment whose first line is our marker, with exactly our project key, for this pull
request, written by the login that our token has, and not minimised. Each part matters: anybody can
paste a marker, `prod` is a part of `non-prod`, and a person who minimises the comment wants a new
one. Of several the oldest is kept; the others came from two runs that posted at the same moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.comment.marker import decode
from ci_bot.bot.github.port import Comment
from ci_bot.contracts.documents.comment import Marker, Phase

_REVIEWS: frozenset[Phase] = frozenset({"planning", "planned", "no_changes", "plan_failed"})
_CLEANUPS: frozenset[Phase] = frozenset({"closed", "cleanup_failed"})


@dataclass(frozen=True, kw_only=True)
class Found:
    """A comment with its marker."""

    comment: Comment
    marker: Marker


@dataclass(frozen=True, kw_only=True)
class Mine:
    """Our comment, and the younger ones that should not be there."""

    kept: Found
    extra: tuple[Found, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether to write; if not, why: the body is the same, or what is there is newer."""

    write: bool
    why: Literal["new", "unchanged", "newer_run", "newer_head", "newer_facts"]


def candidates(comments: Iterable[Comment], *, number: int, key: str) -> list[Found]:
    """The comments that claim to be ours, oldest first. Who wrote them is not looked at yet."""
    found = []
    for comment in comments:
        marker = None if comment.minimized else decode(comment.body)
        if marker is not None and marker.key == key and marker.pr == number:
            found.append(Found(comment=comment, marker=marker))
    return sorted(found, key=lambda each: each.comment.id)


def is_by(comment: Comment, login: str) -> bool:
    """Whether `login` wrote the comment. GitHub ignores the case of logins.

    Both sides come with `[bot]` for an App, so nothing is stripped: an App and a person may share
    the rest of a name.
    """
    return comment.author.lower() == login.lower()


def choose(found: Iterable[Found], login: str) -> Mine | None:
    """Ours among the candidates (oldest first); None where none of them was written by us."""
    ours = [each for each in found if is_by(each.comment, login)]
    return Mine(kept=ours[0], extra=tuple(ours[1:])) if ours else None


def others(found: Iterable[Found], login: str) -> tuple[Found, ...]:
    """The candidates that somebody else wrote: by an earlier token of ours, or forged. Nothing in
    them is believed."""
    return tuple(each for each in found if not is_by(each.comment, login))


def decide(
    there: Found,
    marker: Marker,
    body: str,
    *,
    now: str,
    current_head: str | None = None,
    asked: bool = False,
) -> Verdict:
    """Whether a new body may replace the one that is there.

    1. The same text is not sent again.
    2. A run may always correct itself; an earlier attempt never overwrites a later one.
    3. Facts about the pull request's current head stay, if the new ones are about another head and
       do not report its end.
    4. What a person has asked for is shown: that is how a comment is mended whose record was edited
       so that it would stay for ever.
    5. Of two reviews in their first attempts the one that GitHub started later stays: run ids grow.
    6. In all other cases the later facts stay (`valid_at`). Run ids do not tell there: an apply may
       have waited in its queue while a younger review ran, and a repeated run keeps its id. No fact
       is later than GitHub's own time of the comment: the clock of another runner may be ahead, and
       the record may be edited. Where that is later than our clock, ours is behind, and the run
       ids decide.

    Args:
        there: Our comment as it is now.
        marker, body: What should replace it.
        now: This machine's time.
        current_head: The pull request's head now, where it is known.
        asked: A person has asked for this run after the comment was written.
    """
    old = there.marker
    if there.comment.body.replace("\r\n", "\n").strip() == body.replace("\r\n", "\n").strip():
        return Verdict(False, "unchanged")
    if old.run_id and old.run_id == marker.run_id:
        newer = old.attempt > marker.attempt
        return Verdict(False, "newer_run") if newer else Verdict(True, "new")
    if (
        current_head is not None
        and old.head == current_head
        and marker.head != current_head
        and marker.phase not in _CLEANUPS
    ):
        return Verdict(False, "newer_head")
    if asked:
        return Verdict(True, "new")
    first_reviews = all(
        each.phase in _REVIEWS and each.run_id and each.attempt == 1 for each in (old, marker)
    )
    if first_reviews:
        newer = old.run_id > marker.run_id
        return Verdict(False, "newer_run") if newer else Verdict(True, "new")
    newer = _is_later(there, marker, now)
    return Verdict(False, "newer_facts") if newer else Verdict(True, "new")


def _is_later(there: Found, marker: Marker, now: str) -> bool:
    """Whether the facts of the comment are later than those of `marker`; see rule 6."""
    old, new = _order(there.marker), _order(marker)
    latest = min(_moment(there.marker.valid_at), _moment(there.comment.updated_at))
    if latest > _moment(now):
        return old > new
    return (latest, old) > (_moment(marker.valid_at), new)


def _order(marker: Marker) -> tuple[int, int]:
    """The order in which GitHub started runs."""
    return (marker.run_id, marker.attempt)


def _moment(timestamp: str) -> tuple[str, str]:
    """A time in UTC, so that two can be compared; writers differ in the zeros of a fraction."""
    second, _, fraction = timestamp.rstrip("Z").partition(".")
    return (second, fraction.ljust(6, "0"))
