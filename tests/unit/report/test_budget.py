"""Cutting: what goes first, what never goes, and that the text stays whole wherever it is cut."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.report.markdown.budget import (
    COMMENT_BYTES,
    SUMMARY_BYTES,
    FittedMarkdownPiece,
    SectionShare,
    fit_markdown_sections,
    join_markdown_lines,
    make_first_markdown_pieces,
    split_markdown_blocks,
    tidy_blank_markdown_lines,
    trim_markdown_blocks,
)
from ci_bot.bot.report.markdown.comments import render_apply_comment, render_review_comment
from ci_bot.bot.report.markdown.marker import decode_comment_marker
from ci_bot.bot.report.markdown.sections import (
    DiffsMarkdownSection,
    ModelDiff,
    RowsMarkdownSection,
    StagesMarkdownSection,
)
from ci_bot.bot.report.markdown_text import SafeMarkdown
from ci_bot.protocol.review_report import Report
from ci_bot.redaction.redactor import redact_document
from tests.factories import DIFF, make_apply, make_context, make_marker, make_report, make_risk
from tests.reports import full_report, large_report
from tests.unit.report.dom import assert_inert, parse

FULL = SafeMarkdown("the full report")


def body(text: str) -> str:
    return text.partition("\n")[2]


def test_comment__thousand_models_fit_in_a_second() -> None:
    report = large_report(1_000)
    render_review_comment(
        make_report(), make_context()
    )  # the templates are compiled once per process
    started = time.process_time()  # not the wall clock: other tests may run beside this one
    rendered = render_review_comment(report, make_context())
    assert time.process_time() - started < 1.0
    assert len(rendered.text.encode()) <= COMMENT_BYTES
    assert_inert(body(rendered.text))


@pytest.mark.by_day(1)
@pytest.mark.parametrize("budget", [COMMENT_BYTES, SUMMARY_BYTES, None])
def test_comment__five_thousand_models_do_not_fail(budget: int | None) -> None:
    rendered = render_review_comment(large_report(5_000), make_context(), budget)
    assert budget is None or len(rendered.text.encode()) <= budget
    assert bool(rendered.cut) == (budget is not None)


def test_comment__complete_text_leaves_nothing_out() -> None:
    rendered = render_review_comment(large_report(300), make_context(), None)
    assert rendered.cut == []
    assert "left out" not in rendered.text
    assert " shown; all are in" not in rendered.text
    for index in range(300):
        assert f"model_{index:04}" in rendered.text


def test_comment__uses_the_room_that_it_has() -> None:
    rendered = render_review_comment(large_report(1_000), make_context())
    assert len(rendered.text.encode()) > 0.9 * COMMENT_BYTES


def test_comment__names_its_cuts_in_the_marker() -> None:
    rendered = render_review_comment(large_report(1_000), make_context())
    marker = decode_comment_marker(rendered.text)
    assert marker is not None
    assert marker.cut == rendered.cut != []


def test_comment__the_small_one_is_not_cut() -> None:
    rendered = render_review_comment(make_report(), make_context())
    assert rendered.cut == []


@settings(max_examples=40, deadline=None)
@given(budget=st.integers(min_value=6_000, max_value=70_000))
def test_comment__is_whole_at_any_budget(budget: int) -> None:
    rendered = render_review_comment(_REPORT, make_context(), budget)
    assert len(rendered.text.encode()) <= budget
    page = assert_inert(body(rendered.text))
    assert page.tags["h2"] == 1
    for text in ("Past numbers", "Next:"):
        assert any(text in plain for plain in page.plain)


def _crowded() -> Report:
    large = large_report(400)
    return full_report().model_copy(
        update={
            "changes": large.changes,
            "backfill": large.backfill,
            "stages": large.stages,
            "lineage": large.lineage,
        }
    )


_REPORT = _crowded()


def test_comment__cuts_in_the_order_of_importance() -> None:
    """With less and less room, a section is only cut after those that matter less."""
    order = ["history", "lineage", "metadata", "diffs", "indirect", "edited", "work"]
    first_cut: dict[str, int] = {}
    for budget in range(200_000, 20_000, -9_000):
        for name in render_review_comment(_REPORT, make_context(), budget).cut:
            first_cut.setdefault(name, budget)
    met = [name for name in order if name in first_cut]
    assert met[0] == "lineage", "no earlier plan is there to be cut"
    assert [first_cut[name] for name in met] == sorted(
        (first_cut[name] for name in met), reverse=True
    )
    assert "below" not in first_cut


def test_comment__all_blockers_stay() -> None:
    report = large_report(1_000)
    blockers = [make_risk("R02", severity="blocker", model=f"m.b{index}") for index in range(12)]
    rendered = render_review_comment(
        report.model_copy(update={"risks": [*report.risks, *blockers]}), make_context()
    )
    for index in range(12):
        assert f"`m.b{index}`" in rendered.text


def test_comment__five_thousand_blockers_still_fit() -> None:
    risks = [make_risk("R02", severity="blocker", evidence="x" * 3_000) for _ in range(5_000)]
    rendered = render_review_comment(make_report(risks=risks), make_context())
    assert len(rendered.text.encode()) <= COMMENT_BYTES
    assert "2 more things to fix" not in rendered.text
    assert_inert(body(rendered.text))


def test_comment__names_and_reasons_of_absurd_length_still_fit() -> None:
    text = "😀|`@a" * 180
    report = full_report().model_copy(update={"reasons": [text * 4] * 50})
    history = [
        {"at": "2026-08-21T09:02:11Z", "head": None, "plan": None, "decision": "go", "run": text}
    ] * 20
    context = make_context(marker=make_marker(history=history))
    rendered = render_review_comment(redact_document(report, lambda _: text), context, 60_000)
    assert len(rendered.text.encode()) <= 60_000
    assert_inert(body(rendered.text))


def test_comment__multi_byte_characters_are_never_cut_in_two() -> None:
    report = redact_document(large_report(50), lambda text: f"😀{text}")
    for budget in range(20_000, 20_040):
        rendered = render_review_comment(report, make_context(), budget)
        assert "\ufffd" not in rendered.text.encode().decode("utf-8")
        assert len(rendered.text.encode()) <= budget


def test_apply__review_is_cut_before_the_evidence() -> None:
    rendered = render_apply_comment(
        make_apply(), make_context(phase="applied"), 14_000, review=large_report(300)
    )
    assert len(rendered.text.encode()) <= 14_000
    assert {"lineage", "diffs"} <= set(rendered.cut)
    assert not {"table_diff", "models", "views"} & set(rendered.cut)
    assert_inert(body(rendered.text))


def rows(count: int) -> RowsMarkdownSection[str]:
    items = [f"| row {index} |" for index in range(count)]
    return RowsMarkdownSection("rows", items, str, "rows", FULL, "| head |\n|:--|")


def test_rows__keeps_the_first_and_counts_the_rest() -> None:
    piece = rows(100).fit_section(200)
    assert piece.text.startswith("| head |\n|:--|\n| row 0 |")
    assert 0 < piece.shown < 100 == piece.total
    assert f"{piece.shown} of 100 rows shown; all are in the full report" in piece.text


def test_rows__without_any_room_says_how_many_are_gone() -> None:
    piece = rows(100).fit_section(0)
    assert piece.shown == 0
    assert piece.text == "<sub>100 rows left out here; all are in the full report.</sub>"


def test_rows__without_items_are_nothing() -> None:
    assert rows(0).fit_section(None) == FittedMarkdownPiece(SafeMarkdown(""), 0, 0)


def test_diffs__share_the_room_and_small_ones_stay_whole() -> None:
    small = ModelDiff(SafeMarkdown("**small**"), "@@ -1 +1 @@\n-a\n+b")
    large = ModelDiff(SafeMarkdown("**large**"), DIFF * 60)
    piece = DiffsMarkdownSection("diffs", [large, small], FULL).fit_section(4_000)
    assert "-a\n+b\n```" in piece.text
    assert piece.size <= 4_000 + 400
    assert piece.text.index("**large**") < piece.text.index("**small**")
    assert "more lines in" in piece.text
    assert "1 of 2 diffs shortened" in piece.text
    assert_inert(piece.text)


@given(
    texts=st.lists(st.text(max_size=400), min_size=1, max_size=8),
    budget=st.integers(min_value=0, max_value=4_000),
)
@settings(deadline=None)
def test_diffs__stay_within_their_room_and_closed(texts: list[str], budget: int) -> None:
    items = [ModelDiff(SafeMarkdown("**model**"), text) for text in texts]
    piece = DiffsMarkdownSection("diffs", items, FULL).fit_section(budget)
    assert piece.size <= budget + 200
    assert_inert(piece.text)


def test_stages__keep_every_stage_longer_than_its_items() -> None:
    stages = large_report(500).stages
    piece = StagesMarkdownSection("stages", stages, FULL).fit_section(1_000)
    for position, stage in enumerate(stages, start=1):
        assert f"{position}. {stage.title}" in piece.text
    assert "more" in piece.text
    assert piece.size <= 1_400


def test_fit__the_first_section_gives_first_and_no_more_than_needed() -> None:
    first, second = rows(100), rows(100)
    second.name = "second"
    shares = [SectionShare(first, 100), SectionShare(second, 100)]
    pieces = make_first_markdown_pieces(shares, 10_000)
    whole = pieces["rows"].size
    fitted = fit_markdown_sections(1_000, shares, pieces, 1_000 + 2 * whole - 300)
    assert fitted["rows"].is_cut
    assert not fitted["second"].is_cut
    assert fitted["rows"].size > whole - 300 - 600


def named(name: str, count: int) -> RowsMarkdownSection[str]:
    section = rows(count)
    section.name = name
    return section


def fitted(frame: int, reserve: int, budget: int, count: int) -> dict[str, FittedMarkdownPiece]:
    """Two sections of the same length and reserve in a budget that is too small for both."""
    shares = [
        SectionShare(named("first", count), reserve),
        SectionShare(named("second", count), reserve),
    ]
    return fit_markdown_sections(frame, shares, make_first_markdown_pieces(shares, budget), budget)


def test_fit__a_reserve_is_a_share_of_the_budget() -> None:
    """A reserve of half a comment is half of any budget, so none of two lives at the other's cost."""
    pieces = fitted(frame=0, reserve=COMMENT_BYTES // 2, budget=COMMENT_BYTES // 10, count=300)
    assert all(2_500 < piece.size < 3_500 for piece in pieces.values())


def test_fit__a_section_keeps_a_quarter_of_its_reserve_before_it_goes_away() -> None:
    pieces = fitted(frame=COMMENT_BYTES - 2_000, reserve=4_000, budget=COMMENT_BYTES, count=600)
    assert all(piece.shown and 500 < piece.size < 1_100 for piece in pieces.values())


@given(text=st.text(alphabet="`~<>/details \n#ab", max_size=300), budget=st.integers(0, 300))
def test_trim__keeps_whole_blocks_only(text: str, budget: int) -> None:
    kept, shown, total = trim_markdown_blocks(text, budget)
    assert len(kept.encode()) <= max(budget, 0)
    assert 0 <= shown <= total == len(split_markdown_blocks(text))
    assert all(block in split_markdown_blocks(text) for block in split_markdown_blocks(kept))


def test_split__details_and_fences_are_single_blocks() -> None:
    text = (
        "a\n\n<details open><summary>x</summary>\n\n```sql\n</details>\n\nb\n```\n\n</details>\n\nc"
    )
    assert len(split_markdown_blocks(text)) == 3


def test_tidy__leaves_blank_lines_in_fences() -> None:
    assert (
        tidy_blank_markdown_lines("\n\na\n\n\n\nb\n\n```\n\n\n\nx\n```\n")
        == "a\n\nb\n\n```\n\n\n\nx\n```\n"
    )


def test_lines_above_the_first_section__fit_one_screen() -> None:
    """At desktop width a table row takes one line, or two where a cell is long."""
    risks = [make_risk(f"R{number:02}", severity="high") for number in range(1, 10)]
    crowded = large_report(1_000).model_copy(update={"risks": risks})
    for report in (large_report(1_000), crowded, full_report(), make_report()):
        text = body(render_review_comment(report, make_context()).text)
        page = parse(text.partition("<details")[0])
        lines = page.tags["tr"] + page.tags["p"] + page.tags["h2"] + page.tags["pre"]
        cells = [text for path, text in page.texts if "td" in path]
        lines += sum(len(cell) > 62 for cell in cells)
        assert lines <= 28


@given(st.lists(st.sampled_from(["", "a", "b c", "🟢"]), max_size=8))
def test_joined__is_a_text_without_empty_ends(lines: list[str]) -> None:
    assert join_markdown_lines(lines) == "\n".join(lines).strip("\n") + "\n"
