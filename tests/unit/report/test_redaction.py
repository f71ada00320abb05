"""Secrets are gone before anything is cut, so none survives in two halves."""

from __future__ import annotations

from ci_bot.bot.report.markdown.budget import lift_review_from_comment_body
from ci_bot.bot.report.markdown.comments import (
    CarriedCommentReview,
    render_apply_comment,
    render_cleanup_comment,
    render_planning_comment,
    render_review_comment,
)
from ci_bot.bot.report.markdown.marker import decode_comment_marker
from ci_bot.bot.report.markdown.notices import (
    render_apply_ended_notice,
    render_cleanup_failed_notice,
    render_decision_changed_notice,
)
from ci_bot.redaction.redactor import redact_document
from tests.factories import (
    DIFF,
    HEAD,
    PLAN,
    make_apply,
    make_change,
    make_cleanup,
    make_context,
    make_report,
    on_terminal,
)
from tests.reports import full_report, large_report
from tests.unit.report.dom import assert_inert

SECRET = "ghs_16charactersORmore"


def redact(text: str) -> str:
    return text.replace(SECRET, "***")


def planted(text: str) -> str:
    return f"{SECRET} {text}"


def test_secret__is_never_cut_in_two() -> None:
    """Wherever the cut falls, no part of the secret that could be guessed from stays."""
    diff = DIFF + "\n".join(f"+ jdbc:{SECRET}@host/{index}" for index in range(200))
    report = redact_document(make_report(changes=[make_change(diff=diff)]), redact)
    for budget in range(9_000, 9_120):
        text = render_review_comment(report, make_context(), budget).text
        assert SECRET[:6] not in text


def test_secret__is_gone_from_every_document() -> None:
    review = redact_document(redact_document(make_report(), planted), redact)
    for budget in (60_000, None):
        texts = [
            render_review_comment(
                redact_document(redact_document(full_report(), planted), redact),
                make_context(),
                budget,
            ),
            render_apply_comment(
                redact_document(redact_document(make_apply(), planted), redact),
                make_context(phase="applied"),
                budget,
                review=review,
            ),
            render_cleanup_comment(
                redact_document(redact_document(make_cleanup(), planted), redact),
                make_context(phase="closed"),
                budget,
            ),
        ]
        for rendered in texts:
            assert SECRET not in rendered.text
            assert "***" in rendered.text
    for document in (full_report(), make_apply(), make_cleanup()):
        shown = on_terminal(redact_document(redact_document(document, planted), redact))
        assert SECRET not in shown
        assert "***" in shown


def test_redacted__keeps_what_cannot_hold_a_secret() -> None:
    report = redact_document(make_report(), lambda _: "x")
    assert report.decision == "review"
    assert report.head_sha == HEAD
    assert report.plan_id == PLAN
    assert report.changes[0].change == "direct"
    assert report.changes[0].model == "x"


def test_redacted__without_secrets_is_the_same_document() -> None:
    report = make_report()
    assert redact_document(report, lambda text: text) == report


def test_notice__is_short_and_no_second_sticky_comment() -> None:
    context = make_context()
    url = "https://github.com/shop/warehouse/pull/142#issuecomment-1"
    for text in (
        render_decision_changed_notice(
            "go", "no_go", "audit of `a.b` fails", context, head=HEAD, comment_url=url
        ),
        render_apply_ended_notice("failed", "@team", context, plan_id=PLAN),
        render_cleanup_failed_notice("1 left <b>", context, comment_url=url),
    ):
        assert len(text) < 600
        assert decode_comment_marker(text) is None
        assert_inert(text)


def test_notice__says_what_changed() -> None:
    text = render_decision_changed_notice("go", "no_go", "a test fails", make_context(), head=HEAD)
    assert text.startswith("🟢 Go → **🔴 No-Go** for [`a1b2c3d`]")
    assert "a test fails" in text


def test_carried__an_earlier_review_comes_back_whole() -> None:
    planned = render_review_comment(make_report(), make_context()).text
    earlier = CarriedCommentReview.from_body(planned, decode_comment_marker(planned))
    assert earlier is not None
    assert earlier.plan == PLAN
    assert earlier.text.startswith("## 🟡 Review")
    assert "**Next:**" not in earlier.text
    assert "how to reproduce" in earlier.text
    assert_inert(earlier.text)


def test_carried__survives_every_following_state_without_growing() -> None:
    text = render_review_comment(make_report(), make_context()).text
    first = lift_review_from_comment_body(text)
    for _ in range(3):
        text = render_planning_comment(
            make_context(phase="planning"), review=CarriedCommentReview.from_body(text, None)
        ).text
        assert lift_review_from_comment_body(text) == first
        assert_inert(text.partition("\n")[2])
    closed = render_cleanup_comment(
        make_cleanup(),
        make_context(phase="closed"),
        review=CarriedCommentReview.from_body(text, None),
    ).text
    assert lift_review_from_comment_body(closed) == first


def test_carried__reads_a_body_as_github_returns_it() -> None:
    planned = render_review_comment(make_report(), make_context()).text
    assert lift_review_from_comment_body(
        planned.replace("\n", "\r\n")
    ) == lift_review_from_comment_body(planned)


def test_carried__a_forged_boundary_in_a_diff_is_text() -> None:
    forged = "<!-- /review -->\n@octocat\n<!-- review -->\n</details>\n```\n"
    report = make_report(changes=[make_change(diff=forged)])
    planned = render_review_comment(report, make_context()).text
    again = render_planning_comment(
        make_context(phase="planning"), review=CarriedCommentReview.from_body(planned, None)
    ).text
    assert_inert(again.partition("\n")[2])
    assert "how to reproduce" in again


def test_carried__a_large_review_is_cut_between_its_sections() -> None:
    planned = render_review_comment(large_report(1_000), make_context()).text
    text = render_planning_comment(
        make_context(phase="planning"),
        30_000,
        review=CarriedCommentReview.from_body(planned, decode_comment_marker(planned)),
    ).text
    assert len(text.encode()) <= 30_000
    assert "parts of the review shown" in text
    assert_inert(text.partition("\n")[2])


def test_carried__a_comment_without_a_review_gives_nothing() -> None:
    assert CarriedCommentReview.from_body("just words", None) is None
