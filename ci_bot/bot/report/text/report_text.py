"""Documents for a terminal: complete, a review in short, and what a round of `--watch` changes."""

from __future__ import annotations

from collections.abc import Iterable

from ci_bot.bot.report import words
from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
from ci_bot.bot.report.markdown.comments import Document, render_markdown_text
from ci_bot.bot.report.markdown_text import ELLIPSIS, clip_text, one_line
from ci_bot.bot.report.model.build_table import DisplayWorkView
from ci_bot.bot.report.model.context import CommentViewContext
from ci_bot.bot.report.model.execution_examples import (
    GENERATED,
    list_lines_of_example_view,
    show_example_value,
)
from ci_bot.bot.report.model.finding_groups import FindingPointView
from ci_bot.bot.report.model.sentences import SENTENCES
from ci_bot.bot.report.model.view import ReviewView
from ci_bot.bot.report.text.markdown_page import render_plain
from ci_bot.bot.report.text.page import TextPage, make_page_of_screen
from ci_bot.bot.report.text.screen import WIDTH, OutputScreen
from ci_bot.bot.report.words import describe_lint, describe_tests
from ci_bot.protocol.plan import Checks
from ci_bot.protocol.review_inputs import ExecutionExample, SameAnswer
from ci_bot.protocol.review_report import Report, Risk


def render_terminal_text(
    document: Document, context: CommentViewContext, *, colour: bool = False, width: int = WIDTH
) -> str:
    """Returns the document as plain text, complete, with a newline at its end."""
    return render_plain(render_markdown_text(document, context), colour=colour, width=width)


_NOTHING = "nothing"
MOST_LINES = 12
# Beside these there are the heading, the number of the others, and at most five lines of facts.
_REASONS = 4
# The most lines of the sentence, of the hint if there is no plan, and of the notice about prod.
_SENTENCE, _HINT, _NOTICE = 3, 2, 2


def render_short_review(report: Report, context: CommentViewContext, screen: OutputScreen) -> str:
    """Returns the report in short, with a newline at its end; only text to be copied is wider.

    The decision is the last line, because a reader's prompt appears next to it.
    """
    view = ReviewView(report, context)
    markdown = render_markdown_text(report, context, COMMENT_BYTES)
    # A warning may be above it. Without changes it is a sentence, with more text below it.
    title = next(line for line in markdown.splitlines() if line.startswith(("## ", "⚪ ")))
    title = title.partition("<br>")[0]
    heading = render_plain(title, colour=screen.colour, width=screen.width).splitlines()[0]
    below = [
        *(_list_facts_of_text_report(view, screen) if report.failure is None else []),
        *_describe_next_step(view, screen.width),
    ]
    room = MOST_LINES - 1 - len(below)
    return "\n".join([*_list_reasons_for_terminal(view, screen, room), *below, heading]) + "\n"


def compare_rounds(before: Report, after: Report) -> list[str]:
    """Lists what a round of `--watch` changes, one line each; empty if it changes nothing.

    Two findings are the same if they are of the same rule and about the same model or file.
    """
    lines = []
    if before.decision != after.decision:
        was, now = words.DECISIONS[before.decision], words.DECISIONS[after.decision]
        lines.append(f"decision: {was} → {now}")
    was_found, now_found = _list_findings(before), _list_findings(after)
    lines += [f"new finding: {name}" for name in sorted(now_found - was_found)]
    lines += [f"gone: {name}" for name in sorted(was_found - now_found)]
    was_changed, now_changed = _list_changed_models(before), _list_changed_models(after)
    lines += [f"changes now: {name}" for name in sorted(now_changed - was_changed)]
    lines += [f"no longer changes: {name}" for name in sorted(was_changed - now_changed)]
    return lines


def _list_findings(report: Report) -> set[str]:
    return {_name_finding(risk) for risk in report.risks}


def _name_finding(risk: Risk) -> str:
    where = f" on {risk.model}" if risk.model else f" in {risk.path}" if risk.path else ""
    return one_line(f"{risk.rule}{where}")


def _list_changed_models(report: Report) -> set[str]:
    return {one_line(change.model) for change in report.changes if not change.from_base}


def _list_reasons_for_terminal(view: ReviewView, screen: OutputScreen, room: int) -> list[str]:
    """Lists why: what was compared, the sentence about the change, and the heaviest findings.

    The comparison is named only if it was not with prod. The last line says how many more findings
    there are.
    """
    also = f" Also: {view.head.rest}." if view.head.rest else ""
    notice = view.baseline_notice
    first = _lay_out_cut_texts([] if notice is None else [notice.render_short()], screen, _NOTICE)
    room -= len(first)
    page = TextPage(width=screen.width)
    page.add_paragraph(f"{view.head.sentence}{also}")
    failure = view.report.failure
    hint = _lay_out_cut_texts([failure.hint], screen, _HINT) if failure and failure.hint else []
    # A finding has one line, and the count of the others has one.
    lines = _cut_text_lines_to_room(
        _render_page_lines(page), screen, min(_SENTENCE, room - len(hint) - 2)
    )
    reasons = _list_fitting_findings(view, screen, room - len(lines) - len(hint))
    return [*first, *lines, *reasons, *hint]


def _list_fitting_findings(view: ReviewView, screen: OutputScreen, room: int) -> list[str]:
    """Returns the heaviest findings in at most `room` lines, and how many more there are.

    The last finding shown has at least one line, and may be cut.
    """
    texts = [_describe_finding_in_text_line(point) for point in view.findings.by_rule[:_REASONS]]
    count = len(texts)
    while count > 1:
        needs_more = len(view.risks) > count
        if len(_lay_out(texts[: count - 1], screen)) + 1 + needs_more <= room:
            break
        count -= 1
    hidden = len(view.risks) - count
    more = [f"  and {words.format_count(hidden, 'more finding')}"] if hidden else []
    return [*_lay_out_cut_texts(texts[:count], screen, max(room - len(more), 1)), *more]


def _lay_out_cut_texts(texts: Iterable[str], screen: OutputScreen, room: int) -> list[str]:
    return _cut_text_lines_to_room(_lay_out(texts, screen), screen, room)


def _lay_out(texts: Iterable[str], screen: OutputScreen) -> list[str]:
    page = TextPage(width=screen.width)
    for text in texts:
        page.add_item(text)
    return _render_page_lines(page)


def _render_page_lines(page: TextPage) -> list[str]:
    return page.render_text().strip("\n").splitlines()


def _cut_text_lines_to_room(lines: list[str], screen: OutputScreen, room: int) -> list[str]:
    """Returns at most `room` lines; if it cuts, the last one ends with a mark after a word."""
    if len(lines) <= room:
        return lines
    last = lines[room - 1]
    if len(last) + 2 > screen.width:
        last = last[: screen.width - 1].rpartition(" ")[0]
    return [*lines[: room - 1], clip_text(f"{last} {ELLIPSIS}", screen.width)]


def _describe_finding_in_text_line(point: FindingPointView) -> str:
    """Returns a finding in a line; with its file's line, so that an editor's terminal opens it."""
    risk = point.risk
    place = "" if risk.model or not risk.path or not risk.line else f":{risk.line}"
    more = f" (+{point.more_places})" if point.more_places else ""
    return one_line(f"{risk.severity}: {_name_finding(risk)}{place}{more}: {risk.evidence}")


def _list_facts_of_text_report(view: ReviewView, screen: OutputScreen) -> list[str]:
    counts = [f"{words.format_number(n)} {words.CHANGES[name]}" for name, n in view.change_counts]
    facts = {
        "Changes": f"{' · '.join(counts) or 'none'}, of "
        f"{words.format_count(view.report.project.models, 'model')}",
        "To build": _describe_builds(view)
        + (f"; then prod {view.restated}" if view.restated else ""),
        "Checks": _describe_checks_in_text_report(view.report.checks),
    }
    page = make_page_of_screen(screen)
    for label, text in facts.items():
        page.add_fact(label, clip_text(text, screen.width - page.label_width))
    return page.render_text().splitlines()


def _describe_builds(view: ReviewView) -> str:
    """Says what is built in the environment, and in prod."""
    here = _describe_work(view.planned)
    # If nothing changes, nobody has planned prod's side.
    if not view.report.changes and view.prod_work is None and here == _NOTHING:
        return _NOTHING
    return (
        f"{view.report.environment}: {here}; prod after the merge: {_describe_work(view.prod_work)}"
    )


def _describe_work(work: DisplayWorkView | None) -> str:
    if work is None:
        return "not known"
    if not work.tables:
        return words.format_count(work.views, "view") if work.views else _NOTHING
    return (
        f"{words.format_count(work.tables, 'table')}, "
        f"{words.format_count(work.intervals, 'interval')}"
    )


def _describe_checks_in_text_report(checks: Checks) -> str:
    """Says in words what passed, because a terminal may show no marks."""
    parts = (describe_tests(checks.tests), describe_lint(checks.lint))
    return " · ".join(f"{c.text} passed" if c.result == "ok" else c.text for c in parts)


def _describe_next_step(view: ReviewView, width: int) -> list[str]:
    report = view.report
    rules = [point.risk.rule for point in view.findings.by_rule]
    more = "All of it: --full, or --open for the page"
    why = [f"Why: ci-bot explain {rules[0]}   {more}" if rules else more]
    if report.decision == "no_go" or report.failure is not None:
        return why
    if not report.appliable:
        lines = (
            [clip_text(f"No apply: {view.why_not}", width)]
            if view.why_not and report.changes
            else []
        )
        return [*why, *lines]
    if view.already_built:
        return [*why, f"Built already: {report.environment} {SENTENCES.holds_plan}."]
    return [*why, f"Build it: {view.context.apply_command(report.plan_id)}"]


_TITLES = {
    "same": ("The same", "green"),
    "differs": ("Different", "red"),
    "not_known": ("Not known", "yellow"),
}
_CHANGED = "*"


def render_compared_queries(answer: SameAnswer, screen: OutputScreen) -> str:
    """Returns the answer as text, with a newline at its end; changed values have a mark."""
    page = make_page_of_screen(screen)
    title, color = _TITLES[answer.verdict]
    page.add_title(title, color)
    page.add_paragraph(answer.told)
    if answer.example is not None:
        _add_example(page, answer.example)
    return page.render_text()


def _add_example(page: TextPage, example: ExecutionExample) -> None:
    for table in example.inputs:
        page.add_heading(table.table)
        if not table.rows:
            page.add_paragraph("without rows")
        elif not table.columns:
            page.add_paragraph(f"rows: {len(table.rows)}, of any values")
        else:
            rows = [[show_example_value(value) for value in row] for row in table.rows]
            page.add_table(table.columns, rows)
    page.add_heading(f"The result before and after; {_CHANGED} marks what differs")
    lines = [
        [line.side, *(f"{cell.text}{_CHANGED if cell.changed else ''}" for cell in line.cells)]
        for line in list_lines_of_example_view(example)
    ]
    page.add_table(["", *example.columns], lines)
    page.add_gap()
    page.add_paragraph(GENERATED)
