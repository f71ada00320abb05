"""The sticky comment: its hidden marker, which comment is ours, and who may write over it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, get_args

import cmarkgfm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.github.port import (
    PER_PAGE,
    GitHub,
    NotFound,
    Permission,
    PullComment,
    PullRequest,
    PullState,
    Reaction,
)
from ci_bot.bot.github.sticky_posts import (
    FRESH_SECONDS,
    GitHubStickyComment,
    MarkedComment,
    WriteVerdict,
    choose_own_github_comment,
    decide_overwrite_of_github_comment,
    is_github_comment_of_another_plan,
    list_marked_github_comments,
)
from ci_bot.bot.report.markdown.check_run import CheckRun
from ci_bot.bot.report.markdown.marker import (
    CLOSING,
    LONGEST,
    OPENING,
    decode_comment_marker,
    encode_comment_marker,
    is_claim_of_news_comment,
    mark_news_comment,
)
from ci_bot.errors import GitHubUnavailable
from ci_bot.protocol.comment import Marker, Phase, PlanHistoryEntry
from ci_bot.protocol.plan import Window

ME = "github-actions[bot]"
KEY = "analytics/spark_prod"
HEAD, NEXT_HEAD = "a" * 40, "b" * 40
NOW = "2026-08-22T12:00:00Z"


def marker(**changes: Any) -> Marker:
    facts: dict[str, Any] = {
        "key": KEY,
        "pr": 7,
        "head": HEAD,
        "env": "pr_7",
        "phase": "planned",
        "run_id": 100,
        "attempt": 1,
        "valid_at": "2026-08-22T10:00:00Z",
    }
    return Marker(**{**facts, **changes})


def body(text: str = "a report", **changes: Any) -> str:
    return f"{encode_comment_marker(marker(**changes))}\n{text}"


def comment(number: int = 1, text: str | None = None, **changes: Any) -> PullComment:
    facts: dict[str, Any] = {
        "id": number,
        "number": 7,
        "body": body() if text is None else text,
        "author": ME,
        "created_at": "2026-08-22T10:00:00Z",
        "updated_at": "2026-08-22T10:00:00Z",
        "url": f"https://github.example/octo/flights/pull/7#issuecomment-{number}",
    }
    return PullComment(**{**facts, **changes})


WORDS = st.sampled_from(
    ["-->", "--!>", "<!--", "<img src=x>", "@team", "#12", "`", "\\", '"', "\u202e"]
)
NAMES = st.lists(st.text(max_size=12) | WORDS, min_size=1, max_size=5).map("".join).filter(bool)
SHAS = st.none() | st.text("0123456789abcdef", min_size=40, max_size=40)
PLANS = st.none() | st.text("0123456789abcdef", min_size=64, max_size=64)
TIMES = st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z")
DECISIONS = st.none() | st.sampled_from(["go", "review", "no_go", "no_changes"])
MARKERS = st.builds(
    Marker,
    key=NAMES,
    pr=st.integers(0, 2**40),
    head=SHAS,
    base=SHAS,
    merge=SHAS,
    env=NAMES,
    plan=PLANS,
    window=st.none()
    | st.builds(Window, start=st.none() | TIMES, end=st.none() | TIMES, execution_time=TIMES),
    phase=st.sampled_from(get_args(Phase)),
    decision=DECISIONS,
    run_id=st.integers(0, 2**40),
    attempt=st.integers(1, 99),
    valid_at=TIMES,
    report_sha256=st.none() | NAMES,
    report_run=st.none() | st.integers(0, 2**40),
    cut=st.lists(NAMES, max_size=3),
    history=st.lists(
        st.builds(
            PlanHistoryEntry,
            at=TIMES,
            head=SHAS,
            plan=PLANS,
            decision=DECISIONS,
            run=st.none() | NAMES,
        ),
        max_size=3,
    ),
)


@settings(max_examples=200, deadline=None)
@given(MARKERS, st.text(max_size=40))
def test_marker__round_trip(written: Marker, below: str) -> None:
    line = encode_comment_marker(written)
    assert decode_comment_marker(line) == written
    assert decode_comment_marker(f"{line}\r\n{below}") == written
    assert decode_comment_marker(f"{line}\n{below}") == written


def is_one_html_comment(line: str) -> bool:
    """Whether GitHub's own Markdown parser sees one HTML comment, and then an ordinary word."""
    html = cmarkgfm.github_flavored_markdown_to_html(
        f"{line}\nword\n", options=cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    )
    return (
        html.startswith(f"{line}\n")
        and html.count("<!--") == html.count("-->") == 1
        and re.sub(r"<!--.*?-->", "", html).strip() == "<p>word</p>"
    )


def means_nothing_to_github(line: str) -> bool:
    """Whether nothing between the ends could close, mention, refer, or reorder."""
    inside = line.removeprefix(OPENING).removesuffix(CLOSING)
    return inside.isascii() and not set(inside) & set("<>-@#&`*~|!\n\r\t")


@settings(max_examples=200, deadline=None)
@given(MARKERS)
def test_marker__is_one_html_comment_and_nothing_else(written: Marker) -> None:
    assert is_one_html_comment(encode_comment_marker(written))


@settings(max_examples=200, deadline=None)
@given(MARKERS)
def test_marker__holds_only_characters_that_mean_nothing_to_github(written: Marker) -> None:
    line = encode_comment_marker(written)
    assert means_nothing_to_github(line)
    assert json.loads(line.removeprefix(OPENING).removesuffix(CLOSING))["v"] == 1


@pytest.mark.parametrize(
    "name", ["-->", "x--><img src=x onerror=y>", "<!--", "a-->\n@team", "--><!--"]
)
def test_marker__without_its_escape_the_properties_do_not_hold(name: str) -> None:
    """What the two tests above guard: the same line, with `escape` replaced by identity."""
    plain = OPENING + marker(key=name).model_dump_json() + CLOSING
    assert not (is_one_html_comment(plain) and means_nothing_to_github(plain))
    assert not means_nothing_to_github(plain)
    assert is_one_html_comment(encode_comment_marker(marker(key=name)))


def test_marker__drops_its_oldest_history_rather_than_grow_beyond_reading() -> None:
    entry = PlanHistoryEntry(
        at="2026-08-22T10:00:00Z", head=HEAD, plan=None, decision="go", run="x" * 900
    )
    history = [entry.model_copy(update={"run": f"{n}" + "\u202e" * 900}) for n in range(20)]
    kept = decode_comment_marker(encode_comment_marker(marker(history=history)))
    assert kept is not None
    assert 0 < len(kept.history) < 20
    assert kept.history == history[-len(kept.history) :]
    assert len(encode_comment_marker(marker(history=history))) <= LONGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no marker",
        " " + encode_comment_marker(marker()),
        "text first\n" + encode_comment_marker(marker()),
        encode_comment_marker(marker()).removesuffix(CLOSING),
        encode_comment_marker(marker()) + " more",
        OPENING + CLOSING,
        OPENING + "{}" + CLOSING,
        OPENING + "[1]" + CLOSING,
        OPENING + '{"a":' * 20_000 + CLOSING,
        OPENING + "[" * 9_000 + CLOSING,
        OPENING + "9" * 5_000 + CLOSING,
        OPENING + " " * LONGEST + CLOSING,
        encode_comment_marker(marker()).replace('"v":1', '"v":2'),
        encode_comment_marker(marker()).replace('"pr":7', '"pr":"7"'),
        encode_comment_marker(marker()).replace('"pr":7', '"pr":-7'),
        encode_comment_marker(marker()).replace('"pr":7', '"pr":7,"more":1'),
        encode_comment_marker(marker()).replace('"pr":7', '"pr":NaN'),
        encode_comment_marker(marker()).replace("planned", "plan\u0000ned"),
        OPENING + marker(key="a-->b").model_dump_json() + CLOSING,
        encode_comment_marker(marker()).replace("sqlmesh-plan-review", "other-tool"),
    ],
)
def test_decode__what_cannot_be_believed_is_nothing(text: str) -> None:
    assert decode_comment_marker(text) is None


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300) | st.text(max_size=80).map(lambda text: OPENING + text + CLOSING))
def test_decode__any_text_is_a_marker_or_nothing(text: str) -> None:
    found = decode_comment_marker(text)
    assert found is None or decode_comment_marker(encode_comment_marker(found)) == found


def ours(*comments: PullComment) -> list[int]:
    mine = choose_own_github_comment(list_marked_github_comments(comments, number=7, key=KEY), ME)
    return [] if mine is None else [each.comment.id for each in (mine.kept, *mine.extra)]


def test_choose__is_by_marker_and_author() -> None:
    assert ours(comment(1, "hello"), comment(2), comment(3, "bye")) == [2]


@pytest.mark.parametrize(
    "other",
    [
        comment(1, author="mallory"),
        comment(1, author="github-actions"),
        comment(1, author="github-actions[bot]x"),
        comment(1, author="ghost"),
        comment(1, minimized=True),
        comment(1, body(key="analytics/spark_prod2")),
        comment(1, body(key="analytics/spark")),
        comment(1, body(key=KEY.upper())),
        comment(1, body(pr=70)),
        comment(1, "quote\n" + body()),
    ],
)
def test_choose__leaves_others_alone(other: PullComment) -> None:
    assert ours(other) == []
    assert ours(other, comment(2)) == [2]


def test_choose__ignores_the_case_of_logins_as_github_does() -> None:
    mine = choose_own_github_comment(
        list_marked_github_comments([comment(author="Octo-Bot")], number=7, key=KEY), "octo-bot"
    )
    assert mine is not None


def test_choose__of_several_keeps_the_oldest() -> None:
    assert ours(comment(30), comment(10), comment(20)) == [10, 20, 30]


def verdict(
    old: dict[str, Any],
    new: dict[str, Any],
    *,
    current_head: str | None = None,
    written: str | None = None,
    now: str = NOW,
    asked: bool = False,
) -> WriteVerdict:
    """`written`: GitHub's time of the comment that is there; else what its marker says."""
    text = body(**new)
    decoded = decode_comment_marker(text)
    assert decoded is not None
    known = marker(**old)
    held = comment(1, body(**old), updated_at=written or known.valid_at)
    there = MarkedComment(comment=held, marker=known)
    return decide_overwrite_of_github_comment(
        there, decoded, text, now=now, current_head=current_head, asked=asked
    )


WRITE = WriteVerdict(True, "new")
EARLY, LATE = "2026-08-22T10:00:00Z", "2026-08-22T11:00:00Z"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # The same run goes on, whatever its clock says.
        ({"phase": "planning"}, {"phase": "planned"}, WRITE),
        ({"phase": "planning", "valid_at": LATE}, {"phase": "planned", "valid_at": EARLY}, WRITE),
        ({"attempt": 1}, {"attempt": 2}, WRITE),
        ({"attempt": 2}, {"attempt": 1, "valid_at": LATE}, WriteVerdict(False, "newer_run")),
        # Two reviews: the younger run stays, also where the older one ends last.
        ({"run_id": 100}, {"run_id": 101}, WRITE),
        ({"run_id": 101}, {"run_id": 100, "valid_at": LATE}, WriteVerdict(False, "newer_run")),
        (
            {"run_id": 101, "phase": "planning"},
            {"run_id": 100, "valid_at": LATE},
            WriteVerdict(False, "newer_run"),
        ),
        # A review that was slow does not hide an apply that ran meanwhile.
        (
            {"run_id": 101, "phase": "applied", "valid_at": LATE},
            {"run_id": 100, "valid_at": EARLY},
            WriteVerdict(False, "newer_facts"),
        ),
        # An apply that waited in its queue shows its end, although a review is the younger run.
        (
            {"run_id": 102, "phase": "planned", "valid_at": EARLY},
            {"run_id": 101, "phase": "applied", "valid_at": LATE},
            WRITE,
        ),
        # A review repeated by hand keeps its old run id; its facts are the later ones.
        (
            {"run_id": 101, "valid_at": EARLY},
            {"run_id": 100, "attempt": 2, "valid_at": LATE},
            WRITE,
        ),
        (
            {"run_id": 100, "attempt": 2, "valid_at": LATE},
            {"run_id": 101, "valid_at": EARLY},
            WriteVerdict(False, "newer_facts"),
        ),
        # The tombstone stays, and a pull request that is reopened gets its review.
        (
            {"run_id": 101, "phase": "closed", "valid_at": LATE},
            {"run_id": 100, "valid_at": EARLY},
            WriteVerdict(False, "newer_facts"),
        ),
        (
            {"run_id": 101, "phase": "closed", "valid_at": EARLY},
            {"run_id": 102, "valid_at": LATE},
            WRITE,
        ),
        # Fractions of a second count, and equal times are decided by the run.
        (
            {"run_id": 0, "valid_at": "2026-08-22T10:00:00.5Z"},
            {"run_id": 0, "valid_at": "2026-08-22T10:00:00Z"},
            WriteVerdict(False, "newer_facts"),
        ),
        # Python leaves out a fraction that is zero, and other writers the zeros behind one.
        (
            {"run_id": 101, "phase": "applied", "valid_at": "2026-08-22T10:00:00.500000Z"},
            {"run_id": 102, "phase": "applied", "valid_at": "2026-08-22T10:00:00.5Z"},
            WRITE,
        ),
        (
            {"run_id": 102, "phase": "applied", "valid_at": "2026-08-22T10:00:00.5Z"},
            {"run_id": 101, "phase": "applied", "valid_at": "2026-08-22T10:00:00.500000Z"},
            WriteVerdict(False, "newer_facts"),
        ),
        (
            {"run_id": 101, "phase": "applied"},
            {"run_id": 100, "phase": "applied"},
            WriteVerdict(False, "newer_facts"),
        ),
        ({"run_id": 0, "head": HEAD}, {"run_id": 0, "head": NEXT_HEAD}, WRITE),
    ],
)
def test_decide__table(old: dict[str, Any], new: dict[str, Any], expected: WriteVerdict) -> None:
    assert verdict(old, new) == expected


def test_decide__facts_of_the_current_head_stay() -> None:
    """An apply of the head before ends after the review of the new one: its late facts are old."""
    old = {"run_id": 102, "head": NEXT_HEAD, "valid_at": EARLY}
    new = {"run_id": 101, "head": HEAD, "phase": "applied", "valid_at": LATE}
    assert verdict(old, new, current_head=NEXT_HEAD) == WriteVerdict(False, "newer_head")
    assert verdict(old, new, current_head=HEAD) == WRITE
    assert verdict(old, {**new, "phase": "closed"}, current_head=NEXT_HEAD) == WRITE


AHEAD = "2099-01-01T00:00:00Z"
APPLIED = {"run_id": 90, "phase": "applied"}


def test_decide__no_fact_is_later_than_github_says_that_it_was_written() -> None:
    """The clock of an apply's runner is ahead, or somebody has edited the record."""
    for valid_at in (LATE, AHEAD):
        old = {**APPLIED, "valid_at": valid_at}
        review = {"run_id": 101, "valid_at": "2026-08-22T10:30:00Z"}
        assert verdict(old, review, written=EARLY) == WRITE
        # The neighbour: the apply has really ended after the facts of a review that was slow.
        slow = {"run_id": 101, "valid_at": "2026-08-22T09:59:59Z"}
        assert verdict(old, slow, written=EARLY) == WriteVerdict(False, "newer_facts")


def test_decide__where_our_own_clock_is_behind__the_run_ids_decide() -> None:
    old = {**APPLIED, "valid_at": LATE}
    behind = "2026-08-22T10:00:10Z"
    assert verdict(old, {"run_id": 101, "valid_at": behind}, now=behind) == WRITE
    older = {"run_id": 89, "valid_at": behind}
    assert verdict(old, older, now=behind) == WriteVerdict(False, "newer_facts")


def test_decide__what_a_person_asks_for_is_shown() -> None:
    """A run id or a time that was edited to stay for ever ends with `/sqlmesh plan`."""
    for old in ({"run_id": 10**9}, {"run_id": 10**9, "attempt": 99}, {**APPLIED, "run_id": 10**9}):
        new = {"run_id": 101, "valid_at": EARLY}
        stuck = {**old, "valid_at": LATE}
        assert not verdict(stuck, new).write
        assert verdict(stuck, new, asked=True) == WRITE
    # It is about the head of now, so it yields to facts about another one that is current.
    other = verdict({"head": NEXT_HEAD}, {"run_id": 101}, current_head=NEXT_HEAD, asked=True)
    assert other == WriteVerdict(False, "newer_head")


def test_decide__unchanged_body_is_not_sent() -> None:
    assert verdict({}, {}) == WriteVerdict(False, "unchanged")
    there = MarkedComment(
        comment=comment(1, body("a\nb").replace("\n", "\r\n") + "\r\n"), marker=marker()
    )
    assert decide_overwrite_of_github_comment(
        there, marker(), body("a\nb"), now=NOW
    ) == WriteVerdict(False, "unchanged")
    assert decide_overwrite_of_github_comment(there, marker(), body("a\nc"), now=NOW) == WRITE


class MemoryGitHub:
    """The port with comments in memory. It counts what a real client would send."""

    def __init__(self, me: str = ME) -> None:
        self.me = me
        self.held: dict[int, PullComment] = {}
        self.asked: list[str] = []
        self.refuse_login = False
        self.refuse_fold = False
        self._login: str | None = None
        self._numbers = itertools.count(1)

    def add(self, text: str, author: str = ME, *, minimized: bool = False) -> int:
        number = next(self._numbers)
        self.held[number] = comment(number, text, author=author, minimized=minimized)
        return number

    def bodies(self) -> list[str]:
        return [each.body for each in self.held.values() if each.author == self.me]

    def limit_waits(self, seconds: float) -> AbstractContextManager[None]:
        raise NotImplementedError

    def list_comments(self, number: int, *, first_page: int = 1) -> Iterator[PullComment]:
        everything = list(self.held.values())
        for start in range((first_page - 1) * PER_PAGE, max(len(everything), 1), PER_PAGE):
            self.asked.append("list")
            yield from everything[start : start + PER_PAGE]

    def get_comment(self, comment_id: int) -> PullComment:
        self.asked.append("get")
        return self._held(comment_id)

    def create_comment(
        self, number: int, body: str, *, is_it: Callable[[PullComment], bool] | None = None
    ) -> PullComment:
        self.asked.append("create")
        self._login = self.me
        return self.held[self.add(body, self.me)]

    def update_comment(self, comment_id: int, body: str) -> PullComment:
        self.asked.append("update")
        there = self._held(comment_id)
        self.held[comment_id] = comment(comment_id, body, author=there.author)
        return self.held[comment_id]

    def delete_comment(self, comment_id: int) -> None:
        self.asked.append("delete")
        self.held.pop(comment_id, None)

    def my_login(self) -> str:
        if self.refuse_login:
            raise GitHubUnavailable("GitHub is down.")
        if self._login is None:
            self.asked.append("who")
            self._login = self.me
        return self._login

    def _held(self, comment_id: int) -> PullComment:
        if comment_id not in self.held:
            raise NotFound("no such comment")
        return self.held[comment_id]

    def fold_comment(self, comment: PullComment) -> None:
        self.asked.append("fold")
        if self.refuse_fold:
            raise GitHubUnavailable("GitHub does not fold it.")
        self.held[comment.id] = replace(self.held[comment.id], minimized=True)

    def write_check(self, check: CheckRun) -> None:
        raise NotImplementedError

    def get_pull(self, number: int, *, settle: bool = False) -> PullRequest:
        raise NotImplementedError

    def pulls_for_sha(self, sha: str, *, head: str | None = None) -> list[PullRequest]:
        raise NotImplementedError

    def pull_states(self, numbers: Collection[int]) -> dict[int, PullState]:
        raise NotImplementedError

    def changed_files(self, number: int) -> list[str] | None:
        raise NotImplementedError

    def get_permission(self, login: str) -> Permission:
        raise NotImplementedError

    def add_reaction(self, comment_id: int, content: Reaction) -> None:
        raise NotImplementedError

    def dispatch_workflow(self, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        raise NotImplementedError

    def download_artifact(self, run_id: int, name: str, *, max_bytes: int) -> bytes:
        raise NotImplementedError


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def later(self, seconds: float = FRESH_SECONDS + 1) -> None:
        self.seconds += seconds


def sticky(
    github: GitHub, clock: Clock, *, asked: bool = False, each_plan: bool = False
) -> GitHubStickyComment:
    return GitHubStickyComment(
        github,
        number=7,
        key=KEY,
        monotonic=clock,
        now=lambda: NOW,
        asked=asked,
        each_plan=each_plan,
    )


def test_publish__first_review_creates_one_comment_and_edits_it() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add("Nice work", "ada")
    run = sticky(github, clock)
    assert run.find_comment() is None
    assert run.publish_body(body("planning", phase="planning")).action == "created"
    clock.later()
    published = run.publish_body(body("planned"))
    assert published.action == "updated"
    assert github.bodies() == [body("planned")]
    assert github.asked == ["list", "create", "list", "update"]


def test_publish__later_review_finds_the_comment_and_edits_it() -> None:
    github, clock = MemoryGitHub(), Clock()
    number = github.add(body("old", run_id=90))
    run = sticky(github, clock)
    found = run.find_comment()
    assert found is not None
    assert found.marker.run_id == 90
    run.publish_body(body("planning", phase="planning"))
    clock.later()
    assert run.publish_body(body("planned")).comment.id == number
    run.post_note("The decision is now Review.")
    assert github.bodies() == [body("planned"), "The decision is now Review."]
    assert github.asked == ["list", "who", "update", "get", "update", "create"]
    assert len([each for each in github.asked if each in ("update", "create")]) == 3


def test_publish__finds_the_comment_on_a_later_page() -> None:
    github, clock = MemoryGitHub(), Clock()
    for _ in range(2 * PER_PAGE + 5):
        github.add(body("forged"), "mallory")
    number = github.add(body("ours", run_id=90))
    assert sticky(github, clock).publish_body(body("new")).comment.id == number
    assert github.asked == ["list", "list", "list", "who", "update"]


def test_publish__forged_marker_is_no_comment_of_ours() -> None:
    github, clock = MemoryGitHub(), Clock()
    forged = github.add(body("forged", run_id=10**9, valid_at="2999-01-01T00:00:00Z"), "mallory")
    assert sticky(github, clock).publish_body(body("real")).action == "created"
    assert github.held[forged].body.endswith("forged")


def test_publish__minimised_comment_is_followed_by_a_new_one() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add(body("hidden", run_id=90), minimized=True)
    assert sticky(github, clock).publish_body(body("new")).action == "created"


def test_publish__unchanged_body_is_not_sent() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add(body("same"))
    assert sticky(github, clock).publish_body(body("same")).action == "unchanged"
    assert github.asked == ["list", "who"]


def test_publish__older_run_that_ends_last_writes_nothing() -> None:
    github, clock = MemoryGitHub(), Clock()
    old, young = sticky(github, clock), sticky(github, clock)
    old.publish_body(body("planning", phase="planning", run_id=100))
    clock.later()
    young.publish_body(body("planning anew", phase="planning", run_id=101, head=NEXT_HEAD))
    young.publish_body(body("planned anew", run_id=101, head=NEXT_HEAD))
    clock.later()
    published = old.publish_body(body("planned", run_id=100, valid_at=LATE))
    assert (published.action, published.why) == ("superseded", "newer_run")
    assert github.bodies() == [body("planned anew", run_id=101, head=NEXT_HEAD)]


@pytest.mark.parametrize("order", sorted(set(itertools.permutations("aabb"))))
def test_publish__two_runs_leave_one_comment_of_the_younger(order: tuple[str, ...]) -> None:
    """Both runs have looked before either writes: the worst moment, in every order of writes."""
    github, clock = MemoryGitHub(), Clock()
    runs = {"a": sticky(github, clock), "b": sticky(github, clock)}
    ids = {"a": 100, "b": 101}
    for run in runs.values():
        assert run.find_comment() is None
    done: list[str] = []
    for name in order:
        phase = "planned" if name in done else "planning"
        done.append(name)
        runs[name].publish_body(body(f"{phase} by {name}", phase=phase, run_id=ids[name]))
        clock.later()
    assert github.bodies() == [body("planned by b", phase="planned", run_id=101)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.booleans())
def test_publish__any_interleaving_shows_the_youngest_run_that_wrote(
    order: list[str], together: bool
) -> None:
    github, clock = MemoryGitHub(), Clock()
    runs = {name: sticky(github, clock) for name in "abc"}
    ids = {"a": 100, "b": 101, "c": 102}
    if together:
        for run in runs.values():
            run.find_comment()
    for turn, name in enumerate([*order, *order]):
        runs[name].publish_body(body(f"{turn}", run_id=ids[name]))
        clock.later()
    (shown,) = github.bodies()
    found = decode_comment_marker(shown)
    assert found is not None
    assert found.run_id == max(ids[name] for name in order)


def test_publish__comment_deleted_meanwhile_is_written_anew() -> None:
    github, clock = MemoryGitHub(), Clock()
    number = github.add(body("old", run_id=90))
    run = sticky(github, clock)
    run.find_comment()
    del github.held[number]
    assert run.publish_body(body("new")).action == "created"
    assert github.bodies() == [body("new")]
    clock.later()
    github.held.clear()
    assert run.publish_body(body("newer", phase="no_changes")).action == "created"


def test_publish__comment_minimised_meanwhile_is_followed_by_a_new_one() -> None:
    github, clock = MemoryGitHub(), Clock()
    number = github.add(body("old", run_id=90))
    run = sticky(github, clock)
    run.publish_body(body("planning", phase="planning"))
    github.held[number] = comment(number, body("planning", phase="planning"), minimized=True)
    clock.later()
    assert run.publish_body(body("planned")).action == "created"


def test_publish__marker_broken_by_hand_is_mended() -> None:
    github, clock = MemoryGitHub(), Clock()
    number = github.add(body("old", run_id=90))
    run = sticky(github, clock)
    run.publish_body(body("planning", phase="planning"))
    github.held[number] = comment(number, "somebody edited this")
    clock.later()
    assert run.publish_body(body("planned")).comment.id == number
    assert github.bodies() == [body("planned")]


def test_publish__second_comment_of_ours_is_removed_and_others_stay() -> None:
    github, clock = MemoryGitHub(), Clock()
    kept = github.add(body("old", run_id=90))
    note = github.add("The decision is now Review.")
    other = github.add(body("other project", key="other"))
    extra = github.add(body("twice", run_id=90))
    sticky(github, clock).publish_body(body("new"))
    assert extra not in github.held
    assert {kept, note, other} <= github.held.keys()


@pytest.mark.parametrize("text", ["no marker", body(key="other"), body(pr=8)])
def test_publish__body_that_could_not_be_found_again_is_a_mistake(text: str) -> None:
    github = MemoryGitHub()
    with pytest.raises(ValueError, match="must be the marker"):
        sticky(github, Clock()).publish_body(text)
    assert github.asked == []


def test_publish__what_was_asked_for_ends_a_comment_that_would_stay_for_ever() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add(body("Go FORGED", run_id=10**9))
    event = sticky(github, clock)
    assert event.publish_body(body("planned")).action == "superseded"
    asked = sticky(github, clock, asked=True)
    asked.find_comment()
    clock.later()
    assert asked.publish_body(body("planning", phase="planning", run_id=102)).action == "updated"
    clock.later()
    assert asked.publish_body(body("planned", run_id=102)).action == "updated"


def test_publish__what_was_asked_for_yields_to_a_younger_run_that_wrote_meanwhile() -> None:
    github, clock = MemoryGitHub(), Clock()
    number = github.add(body("old", run_id=90))
    asked = sticky(github, clock, asked=True)
    asked.find_comment()
    github.held[number] = comment(number, body("younger", run_id=103, head=NEXT_HEAD))
    clock.later()
    assert asked.publish_body(body("planned", run_id=102)).action == "superseded"


def test_find__that_did_not_come_to_its_end__looks_again() -> None:
    """Else a second comment would be written where GitHub did not say who we are."""
    github, clock = MemoryGitHub(), Clock()
    github.add(body("old", run_id=90))
    github.refuse_login = True
    run = sticky(github, clock)
    with pytest.raises(GitHubUnavailable):
        run.find_comment()
    github.refuse_login = False
    assert run.publish_body(body("new")).action == "updated"


def test_others__are_comments_with_our_mark_by_somebody_else() -> None:
    github, clock = MemoryGitHub(), Clock()
    other = github.add(body("Go, of the token before", run_id=90), "octo-bot")
    github.add(body("another project", key="other"), "octo-bot")
    github.add("no mark", "octo-bot")
    run = sticky(github, clock)
    assert run.find_comment() is None
    assert run.publish_body(body("new")).action == "created"
    assert [each.id for each in run.foreign_comments] == [other]
    clock.later()
    run.publish_body(body("newer", phase="no_changes"))
    assert [each.id for each in run.foreign_comments] == [other], (
        "the end of the list was read alone"
    )
    assert github.held[other].body.endswith("the token before"), "what is not ours stays"


def test_publish__who_we_are_is_known_by_what_we_wrote() -> None:
    """GitHub does not say whose the token is, and what is assumed instead is wrong."""
    github, clock = MemoryGitHub("review-app[bot]"), Clock()
    kept = github.add(body("old", run_id=90), "review-app[bot]")
    github._login = ME
    published = sticky(github, clock).publish_body(body("new"))
    assert (published.action, published.comment.id) == ("updated", kept)
    assert github.bodies() == [body("new")]


def test_note__with_a_marker_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="must not carry"):
        sticky(MemoryGitHub(), Clock()).post_note(body())


PLANNED, OTHER = "1" * 64, "2" * 64


def shown(github: MemoryGitHub) -> list[str]:
    return [each.body for each in github.held.values() if not each.minimized]


def test_each_plan__gets_a_comment_and_the_one_before_it_is_folded() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add(body("old", run_id=90, plan=OTHER))
    run = sticky(github, clock, each_plan=True)
    new = body("new", plan=PLANNED)
    assert run.publish_body(new).action == "created"
    assert github.asked == ["list", "who", "fold", "create"]
    assert shown(github) == [new]
    # What becomes of this plan is shown in its own comment.
    later = body("applied", plan=PLANNED, phase="applied", run_id=101, valid_at=LATE)
    assert sticky(github, clock, each_plan=True).publish_body(later).action == "updated"
    assert shown(github) == [later]


@pytest.mark.parametrize(
    ("old", "new", "another"),
    [
        ({"plan": OTHER}, {"plan": PLANNED}, True),
        ({"plan": OTHER, "phase": "applied"}, {"plan": PLANNED}, True),
        ({"plan": OTHER}, {"plan": None, "phase": "plan_failed"}, True),
        ({"plan": None, "head": HEAD}, {"plan": None, "head": NEXT_HEAD}, True),
        # The same plan again, and the same commit without one.
        ({"plan": PLANNED}, {"plan": PLANNED, "head": NEXT_HEAD}, False),
        ({"plan": None, "head": HEAD}, {"plan": None, "head": HEAD}, False),
        # Its own beginning.
        ({"phase": "planning", "run_id": 101}, {"plan": PLANNED}, False),
        # No result of a review.
        ({"plan": OTHER}, {"plan": PLANNED, "phase": "planning"}, False),
        ({"plan": OTHER}, {"plan": PLANNED, "phase": "applying"}, False),
        ({"plan": OTHER}, {"plan": PLANNED, "phase": "closed"}, False),
    ],
)
def test_each_plan__is_told_by_its_id(
    old: dict[str, Any], new: dict[str, Any], another: bool
) -> None:
    found = is_github_comment_of_another_plan(marker(**old), marker(**{"run_id": 101, **new}))
    assert found is another


def test_each_plan__whose_older_comment_cannot_be_folded__replaces_it_as_usual() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.refuse_fold = True
    github.add(body("old", run_id=90, plan=OTHER))
    run = sticky(github, clock, each_plan=True)
    new = body("new", plan=PLANNED)
    assert run.publish_body(new).action == "updated"
    assert github.bodies() == [new]
    assert run.fold_failure is not None


def test_each_plan__of_an_older_run_that_ends_last__is_not_shown() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.add(body("first", run_id=90, plan=OTHER))
    old, young = (sticky(github, clock, each_plan=True) for _ in range(2))
    old.find_comment()
    new = body("young", run_id=101, plan=PLANNED)
    young.publish_body(new)
    clock.later()
    assert old.publish_body(body("old", run_id=100, plan="3" * 64)).action == "superseded"
    assert shown(github) == [new]


def test_news__folds_our_own_older_news_of_the_project_alone() -> None:
    github, clock = MemoryGitHub(), Clock()
    first = github.add(mark_news_comment("The decision is now Review.", KEY))
    kept = [
        github.add(mark_news_comment("Go, says somebody else.", KEY), "mallory"),
        github.add(mark_news_comment("Of another project.", "other")),
        github.add("A reply to a command."),
        github.add(body("the review", run_id=90)),
    ]
    run = sticky(github, clock)
    run.publish_body(body("newer"))
    run.post_news("The decision is now Go.")
    run.post_news("Applied.")
    assert github.held[first].minimized
    assert not any(github.held[number].minimized for number in kept)
    assert shown(github)[-1].startswith("Applied."), "the newest alone is shown"
    assert len([text for text in shown(github) if is_claim_of_news_comment(text, KEY)]) == 2


def test_news__that_cannot_be_folded__is_followed_by_a_new_one_anyway() -> None:
    github, clock = MemoryGitHub(), Clock()
    github.refuse_fold = True
    for number in range(3):
        github.add(mark_news_comment(f"News {number}.", KEY))
    run = sticky(github, clock)
    run.publish_body(body("the review"))
    run.post_news("Applied.")
    assert github.asked.count("fold") == 1
    assert run.fold_failure is not None
    assert shown(github)[-1].startswith("Applied.")


@pytest.mark.parametrize("key", ["a-->b", "<img src=x>", "@team #1", '"', "`\u202e`"])
def test_news__of_any_project__is_marked_by_a_comment_that_stays_one(key: str) -> None:
    text = mark_news_comment("News.", key)
    assert is_claim_of_news_comment(text, key)
    assert not is_claim_of_news_comment(text, "other")
    page = cmarkgfm.github_flavored_markdown_to_html(text)
    assert page.startswith("<p>News.</p>")
    assert "@team" not in page and "<img" not in page
