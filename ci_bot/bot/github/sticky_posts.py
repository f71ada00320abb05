"""What the bot keeps up to date on GitHub: a comment, and the issue about drift.

There is one comment for each pull request and project; it is found, read and replaced as a whole.
The one issue says how prod has drifted.

The cost of the comment, for up to 100 comments (each further page of the list is one more request):

- `find_comment`: one request for the list, and one for our login if a comment may be ours.
- `publish_body`: one write, and before it one request to read again if the last look is old.

So a first review is list, write, read, write: 4. A later one is list, login, write, read, write: 5,
and 6 with the short comment about a changed decision. To fold an older comment is one more.

The issue is found by its label, our mark in its first line, and its author, which is this token:
anybody can write the mark, and if somebody removes the label, there is a new issue. It costs one
request for the list, one for our login if an issue may be ours, and one write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from ci_bot.bot.github.port import PER_PAGE, GitHub, NotFound, PullComment, RepositoryIssue
from ci_bot.bot.report import decode_comment_marker, is_claim_of_news_comment, mark_news_comment
from ci_bot.errors import BotError
from ci_bot.protocol.base import Sha
from ci_bot.protocol.comment import Marker, Phase

# Which comment is ours, and whether to overwrite it. Pure.
#
# Our comment has our marker as its first line, with exactly our project key and this pull request.
# The login of our token wrote it, and it is not minimized. Each part matters: anybody can paste a
# marker, `prod` is a part of `non-prod`, and a person who minimizes the comment wants a new one. If
# there are several, the oldest is kept; the others come from two runs that posted at the same
# moment.


_REVIEWS: frozenset[Phase] = frozenset({"planning", "planned", "no_changes", "plan_failed"})
_RESULTS: frozenset[Phase] = _REVIEWS - {"planning"}
_CLEANUPS: frozenset[Phase] = frozenset({"closed", "cleanup_failed"})


@dataclass(frozen=True, kw_only=True)
class MarkedComment:
    """A comment with its marker."""

    comment: PullComment
    marker: Marker


@dataclass(frozen=True, kw_only=True)
class OwnComments:
    """Our comment, and younger ones that should not exist."""

    kept: MarkedComment
    extra: tuple[MarkedComment, ...] = ()


@dataclass(frozen=True)
class WriteVerdict:
    """The decision whether to write, with its reason."""

    write: bool
    why: Literal["new", "unchanged", "newer_run", "newer_head", "newer_facts"]


def list_marked_github_comments(
    comments: Iterable[PullComment], *, number: int, key: str
) -> list[MarkedComment]:
    """Lists the comments that claim to be ours, the oldest first; their authors are not checked."""
    found = []
    for comment in comments:
        marker = None if comment.minimized else decode_comment_marker(comment.body)
        if marker is not None and marker.key == key and marker.pr == number:
            found.append(MarkedComment(comment=comment, marker=marker))
    return sorted(found, key=lambda each: each.comment.id)


def is_github_comment_by(comment: PullComment, login: str) -> bool:
    """Whether `login` wrote the comment; GitHub ignores the case of logins.

    Both sides have `[bot]` for an App, so nothing is removed: an App and a person may share the
    rest of a name.
    """
    return comment.author.lower() == login.lower()


def choose_own_github_comment(found: Iterable[MarkedComment], login: str) -> OwnComments | None:
    """Chooses ours among the candidates (the oldest first); None if we wrote none of them."""
    ours = [each for each in found if is_github_comment_by(each.comment, login)]
    return OwnComments(kept=ours[0], extra=tuple(ours[1:])) if ours else None


def list_foreign_github_comments(
    found: Iterable[MarkedComment], login: str
) -> tuple[MarkedComment, ...]:
    """Returns the candidates that somebody else wrote; nothing in them is trusted.

    They come from an earlier token of ours, or are forged.
    """
    return tuple(each for each in found if not is_github_comment_by(each.comment, login))


def decide_overwrite_of_github_comment(
    there: MarkedComment,
    marker: Marker,
    body: str,
    *,
    now: str,
    current_head: Sha | None = None,
    asked: bool = False,
) -> WriteVerdict:
    """Decides whether a new body may replace the one that is there.

    1. The same text is not sent again.
    2. A run may always correct itself; an earlier attempt never overwrites a later one.
    3. Facts about the pull request's current head stay, if the new ones are about another head and
       do not report its end.
    4. What a person has asked for is shown. This fixes a comment whose record somebody has edited
       so that it would stay forever.
    5. Of two reviews in their first attempts, the one GitHub started later stays: run ids grow.
    6. In all other cases the later facts stay (`valid_at`). Run ids do not help here: an apply may
       have waited in its queue while a younger review ran, and a repeated run keeps its id. No fact
       is later than GitHub's own time of the comment: another runner's clock may be ahead, and
       the record may be edited. If that time is later than our clock, our clock is behind, and the
       run ids decide.

    Args:
        there: Our comment as it is now.
        marker, body: The new marker and text.
        now: This machine's time.
        current_head: The pull request's current head, if it is known.
        asked: Whether a person asked for this run after the comment was written.
    """
    old = there.marker
    if there.comment.body.replace("\r\n", "\n").strip() == body.replace("\r\n", "\n").strip():
        return WriteVerdict(False, "unchanged")
    if old.run_id and old.run_id == marker.run_id:
        newer = old.attempt > marker.attempt
        return WriteVerdict(False, "newer_run") if newer else WriteVerdict(True, "new")
    if (
        current_head is not None
        and old.head == current_head
        and marker.head != current_head
        and marker.phase not in _CLEANUPS
    ):
        return WriteVerdict(False, "newer_head")
    if asked:
        return WriteVerdict(True, "new")
    first_reviews = all(
        each.phase in _REVIEWS and each.run_id and each.attempt == 1 for each in (old, marker)
    )
    if first_reviews:
        newer = old.run_id > marker.run_id
        return WriteVerdict(False, "newer_run") if newer else WriteVerdict(True, "new")
    newer = _is_github_comment_later(there, marker, now)
    return WriteVerdict(False, "newer_facts") if newer else WriteVerdict(True, "new")


def is_github_comment_of_another_plan(old: Marker, marker: Marker) -> bool:
    """Whether a review's result is about another plan than the existing comment.

    A run continues the comment that it began, and so does a result about the same plan: its apply,
    its acceptances, the same review again. Reviews without a plan differ by their commits.
    """
    if marker.phase not in _RESULTS or (old.run_id and old.run_id == marker.run_id):
        return False
    return (old.plan, old.plan or old.head) != (marker.plan, marker.plan or marker.head)


def _is_github_comment_later(there: MarkedComment, marker: Marker, now: str) -> bool:
    """Whether the comment's facts are later than those of `marker`; see rule 6."""
    old, new = _order_github_runs(there.marker), _order_github_runs(marker)
    latest = min(
        _normalize_github_timestamp(there.marker.valid_at),
        _normalize_github_timestamp(there.comment.updated_at),
    )
    if latest > _normalize_github_timestamp(now):
        return old > new
    return (latest, old) > (_normalize_github_timestamp(marker.valid_at), new)


def _order_github_runs(marker: Marker) -> tuple[int, int]:
    """Returns the key by which runs are ordered as GitHub started them."""
    return (marker.run_id, marker.attempt)


def _normalize_github_timestamp(timestamp: str) -> tuple[str, str]:
    """Makes two times in UTC comparable: writers differ in the zeros of a fraction."""
    second, _, fraction = timestamp.rstrip("Z").partition(".")
    return (second, fraction.ljust(6, "0"))


FRESH_SECONDS = 10.0
_MOST_EXTRA = 5


@dataclass(frozen=True, kw_only=True)
class PublishedComment:
    """The result of publishing a body.

    `superseded` means that the comment was not changed, because it shows something newer (`why`).
    """

    action: Literal["created", "updated", "unchanged", "superseded"]
    comment: PullComment
    why: str | None = None


class GitHubStickyComment:
    """Our comment on one pull request, for one project key.

    Args:
        github: The repository.
        number: The pull request.
        key: Distinguishes the projects of one repository; compared as a whole.
        monotonic: A clock in seconds. A comment that was read more than `FRESH_SECONDS` ago is read
            again before it is replaced, because another run may have written meanwhile.
        now: The time of day, ISO 8601 in UTC.
        asked: Whether a person asked for this run, and it is about the pull request's current
            state.
        each_plan: Whether each plan gets a comment of its own, and the one before it is folded.
    """

    def __init__(
        self,
        github: GitHub,
        *,
        number: int,
        key: str,
        monotonic: Callable[[], float],
        now: Callable[[], str],
        asked: bool = False,
        each_plan: bool = False,
    ) -> None:
        self._github = github
        self._number = number
        self._key = key
        self._monotonic = monotonic
        self._now = now
        self._asked = asked
        self._each_plan = each_plan
        self._news: dict[int, PullComment] = {}
        self._fold_failure: BotError | None = None
        self._seen_first: PullComment | None = None
        self._others: tuple[MarkedComment, ...] = ()
        self._found: MarkedComment | None = None
        self._looked_at: float | None = None
        self._last_page = 1
        self._rival_possible = False

    def find_comment(self) -> MarkedComment | None:
        """Returns our comment as it was when last read; the first call reads it."""
        if self._looked_at is None:
            self._read_comments()
        return self._found

    @property
    def known_comment(self) -> MarkedComment | None:
        """Our comment as it was when last read, if there was one; sends no request."""
        return self._found

    @property
    def foreign_comments(self) -> tuple[PullComment, ...]:
        """Comments that carry our mark and are not ours, as of the last read."""
        return tuple(each.comment for each in self._others)

    @property
    def fold_failure(self) -> BotError | None:
        """Why an older comment was not folded; None if there was no failure."""
        return self._fold_failure

    def publish_body(self, body: str, *, current_head: Sha | None = None) -> PublishedComment:
        """Makes `body` our comment's text, unless a newer one is there; returns what happened.

        Args:
            body: The whole comment; its first line is the marker of this pull request and key.
            current_head: The pull request's current head, if the caller has just read it.

        Raises:
            ValueError: the body has no such first line, so no run would find the comment again.
            BotError: GitHub did not accept it; see `ci_bot.bot.github.port`.
        """
        marker = decode_comment_marker(body)
        if marker is None or marker.key != self._key or marker.pr != self._number:
            raise ValueError("the comment's first line must be the marker of this pull request")
        self._look_if_old()
        try:
            return self._write_comment(marker, body, current_head)
        except NotFound:
            if self._found is None:
                raise
        self._read_comments()  # somebody has deleted it at this moment
        return self._write_comment(marker, body, current_head)

    def post_note(self, body: str) -> PullComment:
        """Writes a short new comment; people are notified about it, but not about an edit.

        Raises:
            ValueError: the body starts with a marker, so it would count as our comment.
        """
        if decode_comment_marker(body) is not None:
            raise ValueError("a note must not carry the comment's marker")
        return self._github.create_comment(self._number, body)

    def post_news(self, body: str) -> PullComment:
        """Writes a note that replaces the one before it, which is folded; returns the new one."""
        older = [
            each
            for each in self._news.values()
            if is_github_comment_by(each, self._github.my_login())
        ]
        written = self.post_note(mark_news_comment(body, self._key))
        self._news = {written.id: written}
        for comment in older[-_MOST_EXTRA:]:
            if not self._try_fold(comment):
                break
        return written

    def _try_fold(self, comment: PullComment) -> bool:
        """Folds the comment, and returns whether it is folded now; a failure loses nothing."""
        try:
            self._github.fold_comment(comment)
        except BotError as error:
            self._fold_failure = error
            return False
        return True

    def _write_comment(
        self, marker: Marker, body: str, current_head: Sha | None
    ) -> PublishedComment:
        if self._found is None:
            written = self._github.create_comment(
                self._number, body, is_it=self._match_marker(marker)
            )
            self._rival_possible = True
            created = self._remember_comment(written, marker, "created")
            if not any(is_github_comment_by(each.comment, written.author) for each in self._others):
                return created
            # GitHub had not said who we are. Now it is known that a comment of ours existed
            # already.
            self._read_comments()
            return (
                created if self._found is None else self._write_comment(marker, body, current_head)
            )
        verdict = decide_overwrite_of_github_comment(
            self._found,
            marker,
            body,
            now=self._now(),
            current_head=current_head,
            asked=self._asked and self._found.comment == self._seen_first,
        )
        if (
            verdict.write
            and self._each_plan
            and is_github_comment_of_another_plan(self._found.marker, marker)
            # First, so that an older plan never appears beside the new one as if it were still
            # valid.
            and self._try_fold(self._found.comment)
        ):
            self._found = None
            return self._write_comment(marker, body, current_head)
        if verdict.write:
            written = self._github.update_comment(self._found.comment.id, body)
            return self._remember_comment(written, marker, "updated")
        return PublishedComment(
            action="unchanged" if verdict.why == "unchanged" else "superseded",
            comment=self._found.comment,
            why=verdict.why,
        )

    def _match_marker(self, marker: Marker) -> Callable[[PullComment], bool]:
        def is_it(comment: PullComment) -> bool:
            return decode_comment_marker(comment.body) == marker and is_github_comment_by(
                comment, self._github.my_login()
            )

        return is_it

    def _remember_comment(
        self, comment: PullComment, marker: Marker, action: Literal["created", "updated"]
    ) -> PublishedComment:
        self._found = MarkedComment(comment=comment, marker=marker)
        self._looked_at = self._monotonic()
        return PublishedComment(action=action, comment=comment)

    def _look_if_old(self) -> None:
        if self._looked_at is None:
            self._read_comments()
        elif self._monotonic() - self._looked_at > FRESH_SECONDS:
            if self._found is None:
                self._read_comments()
            else:
                self._look_again(self._found)

    def _look_again(self, known: MarkedComment) -> None:
        """Reads our comment again, or the end of the list if the comment is new.

        Another run may also have found no comment and written its own; the list shows both.
        """
        if self._rival_possible:
            self._rival_possible = False
            self._read_comments(first_page=self._last_page)
            if self._found is not None:
                return
        try:
            comment = self._github.get_comment(known.comment.id)
        except NotFound:
            comment = None
        if comment is None or comment.minimized:
            self._read_comments()
            return
        # If a person's edit has broken the marker, the comment is still ours.
        self._found = MarkedComment(
            comment=comment, marker=decode_comment_marker(comment.body) or known.marker
        )
        self._looked_at = self._monotonic()

    def _read_comments(self, *, first_page: int = 1) -> None:
        """Reads the list from a page on, remembers our comment, and removes others of ours."""
        comments = list(self._github.list_comments(self._number, first_page=first_page))
        found = list_marked_github_comments(comments, number=self._number, key=self._key)
        if first_page == 1:
            self._news.clear()
        self._news |= {
            each.id: each
            for each in comments
            if not each.minimized and is_claim_of_news_comment(each.body, self._key)
        }
        login = self._github.my_login() if found else ""
        mine = choose_own_github_comment(found, login)
        # Only a complete read counts.
        self._looked_at = self._monotonic()
        self._last_page = first_page + len(comments) // PER_PAGE
        self._found = mine.kept if mine else None
        if first_page == 1:
            self._others = list_foreign_github_comments(found, login)
        if self._seen_first is None and mine is not None:
            self._seen_first = mine.kept.comment
        for extra in mine.extra[:_MOST_EXTRA] if mine else ():
            try:
                self._github.delete_comment(extra.comment.id)
            except BotError:
                return  # a second comment is ugly, but no reason to lose the first


DRIFT_LABEL = "sqlmesh-drift"

IssueChange = Literal["created", "edited", "closed", "unchanged", "none"]


def publish_drift_issue_on_github(
    github: GitHub, *, key: str, title: str, body: str, clean: bool
) -> tuple[IssueChange, RepositoryIssue | None]:
    """Writes what a run found into the issue; if nothing differs, closes one that is open.

    Args:
        key: Distinguishes the issues of several projects in one repository.
        clean: Whether nothing differs, so that no issue is opened.

    Returns:
        What was done, and the issue; None if nothing differs and there is no issue.

    Raises:
        BotError: GitHub refuses it, or does not answer.
    """
    mark = f"<!-- sqlmesh-drift {hashlib.sha256(key.encode()).hexdigest()[:16]} -->"
    text = f"{mark}\n{body}"
    known = _find_github_issue(github, mark)
    if known is None:
        if clean:
            return "none", None
        return "created", github.create_issue(title, text, labels=[DRIFT_LABEL])
    if known.is_open is not clean and known.body.replace("\r\n", "\n").strip() == text.strip():
        return "unchanged", known
    if clean and not known.is_open:
        return "unchanged", known
    written = github.update_issue(known.number, title=title, body=text, is_open=not clean)
    return "closed" if clean else "edited", written


def _find_github_issue(github: GitHub, mark: str) -> RepositoryIssue | None:
    """Finds our issue: an open one first, then the oldest; None if there is none."""
    marked = [
        issue
        for issue in github.list_issues(DRIFT_LABEL)
        if issue.body.replace("\r\n", "\n").partition("\n")[0] == mark
    ]
    if not marked:
        return None
    login = github.my_login().lower()
    ours = [issue for issue in marked if issue.author.lower() == login]
    return min(ours, key=lambda issue: (not issue.is_open, issue.number), default=None)
