"""The report on a laptop: readable in 96 columns, and the same text with and without colours."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from ci_bot.bot.report.markdown.comments import Document
from ci_bot.bot.report.markdown_text import make_code_span, make_fenced_block, make_table_cell
from ci_bot.bot.report.text.markdown_page import render_plain
from ci_bot.bot.report.text.page import TextPage
from tests.factories import make_apply, make_cleanup, make_report, on_terminal
from tests.golden.samples import report as recorded
from tests.reports import full_report, large_report

# Colours, and the beginning and the end of a link.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")


def test_review__says_decision_reasons_and_next_command() -> None:
    text = on_terminal(make_report())
    assert text.startswith("🟡 Review · analytics → pr_142\n──")
    assert "\nPast numbers may change: stg.orders is computed again for all of its history" in text
    assert (
        "    ci-bot apply --project analytics --gateway spark_prod --environment pr_142 "
        "--plan-id 9f3c21aa01bc\n"
    ) in text
    assert "/sqlmesh" not in text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("document", [full_report(), make_apply(), make_cleanup()])
def test_document__has_no_markup_and_fits_the_width(document: Document, width: int) -> None:
    text = on_terminal(document, width=width)
    lines = [line for line in text.split("\n") if not line.startswith("    ")]
    for noise in ("**", "|", "<details", "`", "](", "&nbsp;", "<sub>", "<br", "<!--", "mermaid"):
        assert noise not in "\n".join(lines)
    # What is to be copied stays in one line, and a diff's lines are the file's.
    assert max(map(cell_len, lines)) <= width
    assert not [line for line in lines if line != line.rstrip()]


def test_review__says_who_still_reads_what_goes() -> None:
    text = on_terminal(full_report())
    assert re.search(r"mart.legacy_ltv +model removed +mart.board, exports.ltv_daily", text)
    assert re.search(r"dim.customers +segment dropped \(STRING\) +mart.churn", text)
    assert "The plan for prod would fail" in text


def test_colours__change_nothing_but_colours() -> None:
    for document in (full_report(), make_apply(), make_cleanup()):
        shown, coloured = on_terminal(document), on_terminal(document, colour=True)
        assert "\x1b" not in shown
        assert re.search(r"\x1b\[1;3[123]m", coloured)
        assert _COLOUR.sub("", coloured) == shown


def test_title__of_no_colour_is_in_that_of_the_terminal() -> None:
    """White on a white terminal cannot be read."""
    coloured = render_plain("## ⚪ No model changes", colour=True)
    assert "\x1b[37m" not in coloured
    assert coloured.startswith("\x1b[1m⚪")


def test_list__counts_one_of_a_thing() -> None:

    header = "| Model | Intervals | Batches | Why |\n|:--|--:|--:|:--|"
    shown = render_plain(f"{header}\n| `a.b` | 1 | 2 | {'because ' * 7} |", width=60)
    assert "a.b · 1 interval · 2 batches · because" in shown


def test_list__names_what_a_number_is() -> None:
    header = "| When | Decision | Run |\n|:--|:--|--:|"
    shown = render_plain(f"{header}\n| {'long ago ' * 6}| 🟡 Review | 8801 |", width=60)
    assert shown.endswith("Review · run 8801\n")


def test_table__cuts_a_name_after_a_dot() -> None:
    page = TextPage(width=40)
    page.add_table(
        ["Model", "Rows"], [["spark_catalog.a_schema.daily_carrier_performance", "1"] * 1]
    )
    assert "….daily" not in page.render_text()


def test_apply__shows_what_was_built_and_compared() -> None:
    text = on_terminal(make_apply(), width=120)
    assert text.startswith("🟡 Built in pr_142 · the numbers differ from prod · analytics\n")
    assert re.search(r"mart.revenue · it has no grain", text)
    assert "of 412,904 rows · 0 gone, 0 new" in text


def test_apply__a_refusal_lists_the_difference() -> None:
    document = make_apply(result="refused", difference={"snapshots_added": ["mart.new"]})
    text = on_terminal(document)
    assert "only in the current plan: mart.new" in text
    assert "Built" not in text


def test_cleanup__says_what_is_left_and_how_to_go_on() -> None:
    document = make_cleanup(
        result="incomplete", leftovers=[{"object": "a.b", "why": "no permission to drop"}]
    )
    text = on_terminal(document)
    assert text.startswith("⚠ Cleanup incomplete: pr_142 · 1 left over\n")
    assert re.search(r"a.b +no permission to drop", text)
    assert (
        "    ci-bot cleanup --project analytics --gateway spark_prod --environment pr_142\n" in text
    )


def test_large_report__is_complete() -> None:
    text = on_terminal(large_report(300))
    assert text.count("model_0299") >= 2


def test_table__a_long_name_keeps_its_end() -> None:
    page = TextPage(width=30)
    page.add_table(["model", "rows"], [["catalog.schema.a_rather_long_name", "1,200"]])
    assert page.render_text().split("\n")[1] == "  …a.a_rather_long_name  1,200"
    assert all(len(line) <= 31 for line in page.render_text().split("\n"))


def test_table__that_is_too_wide_becomes_a_list() -> None:
    long = "a sentence that is longer than what may stand beside a name, by far"
    header = "| Name | Rows | Why | Owner |\n|:--|--:|:--|:--|"
    text = render_plain(f"{header}\n| `a.b` | 1,200 | {long} | – |\n", width=80)
    assert text == f"  - a.b · 1,200 rows\n      Why: {long}\n"


# What stands in a code span or a fence is nobody's markup, whatever it looks like.
@pytest.mark.parametrize(
    "text", ["**x**", "[a](b)", "<sub>", "&nbsp;", "a|b", "</details>", "\u2022"]
)
def test_span__keeps_what_is_in_it(text: str) -> None:
    assert (
        render_plain(f"{make_code_span(text)} and {make_code_span(text)}\n")
        == f"{text} and {text}\n"
    )
    table = render_plain(
        f"| A | B |\n|:--|:--|\n| {make_table_cell(text)} | {make_table_cell(text)} |\n"
    )
    assert table.split("\n")[1].split() == [text, text]
    assert render_plain(f"{make_fenced_block(text)}\n") == f"    {text}\n"


def test_list__counts_as_markdown_does() -> None:
    text = render_plain("1. one\n1. `two`\n1. three\n\n- a point\n")
    assert re.findall(r"(\S+) (one|two|three|a point)", text) == [
        ("1.", "one"),
        ("2.", "two"),
        ("3.", "three"),
        ("-", "a point"),
    ]


def test_emphasis__is_no_underscore_and_names_keep_theirs() -> None:
    text = render_plain(
        "It counts _high instead of `my_rule`, by the policy._ See `_a_` and `b_c_d`.\n"
    )
    assert text == "It counts high instead of my_rule, by the policy. See _a_ and b_c_d.\n"


def test_table__of_wide_characters_stays_in_line_and_keeps_every_column_readable() -> None:
    page = TextPage(width=60)
    rows = [
        ("marts.daily_carrier_performance_by_airport", "INCREMENTAL_BY_TIME_RANGE", "12,345"),
        ("marts.顧客", "FULL", "3"),
    ]
    page.add_table(("Model", "Kind", "Rows"), rows)
    head, first, second = page.render_text().splitlines()
    assert all(len(name) > 15 for name in first.split()[:2])
    # Each of the two characters is as wide as two.
    assert second.index("FULL") + 2 == head.index("Kind")


@pytest.mark.parametrize("width", [60, 200])
@pytest.mark.parametrize("name", ["base_branch", "forward_only_reader", "wide_change"])
def test_terminal__shows_the_whole_report_with_rows_before_and_after(name: str, width: int) -> None:
    text = on_terminal(recorded(name), width=width)
    assert text.startswith("🟡 Review · ")
    if name != "wide_change":
        assert re.search(r"^ *(- )?before .*'a'", text, re.M)
        assert re.search(r"^ *(- )?after .*'a'", text, re.M)


def test_table__wraps_a_sentence_and_never_cuts_it() -> None:
    page = TextPage(width=60)
    row = ("marts.orders_by_day", "the key of the partner is not fixed", "crm")
    page.add_table(("Model", "Why", "Owner"), [row])
    assert page.render_text() == (
        "  Model                Why                             Owner\n"
        "  marts.orders_by_day  the key of the partner is not   crm\n"
        "                       fixed\n"
    )


def test_table__of_wide_names_fits_the_page() -> None:
    header = "| Model | Kind | Rows |\n|:--|:--|--:|"
    rows = "\n".join(f"| `marts.{'顧客' * count}` | `🧱 FULL` | {count} |" for count in (2, 9, 40))
    shown = render_plain(f"{header}\n{rows}\n", width=60)
    lines = shown.splitlines()
    assert {cell_len(line) for line in lines[1:]} <= {59, 60}
    assert lines[3].startswith("  …客")


def test_name__that_a_comment_breaks_is_whole() -> None:
    text = "| Model | Rows |\n|:--|--:|\n| `marts.`<br>`daily`<br>changed: `a` | 1 |\n"
    assert "  marts.daily · changed: a     1\n" in render_plain(text)


def test_link__can_be_followed_where_colours_are_shown() -> None:
    text = "- see [the rule](https://example.org/rule) of `a`\n"
    assert render_plain(text) == "  - see the rule of a\n"
    coloured = render_plain(text, colour=True)
    assert ";https://example.org/rule\x1b\\the rule\x1b]8;;\x1b\\" in coloured
    assert _COLOUR.sub("", coloured) == render_plain(text)


def test_fact__has_a_bold_label_and_no_other_bold_words() -> None:
    coloured = render_plain("**Next:** fix `a` and **push**.\n", colour=True)
    assert coloured == "\x1b[1mNext         \x1b[0mfix a and \x1b[1mpush\x1b[0m.\n"


def test_table__whose_first_cells_are_sentences_becomes_a_list() -> None:
    row = "| `marts.a` · The model is new: prod has nothing to compare it with | none of 224 rows |"
    shown = render_plain(f"| Data | Rows |\n|:--|:--|\n{row}\n", width=70)
    assert shown == (
        "  - marts.a · The model is new: prod has nothing to compare it with ·\n"
        "    none of 224 rows\n"
    )


@pytest.mark.parametrize("colour", [True, False])
def test_command__stays_in_one_line_to_be_copied(colour: bool) -> None:
    command = f"ci-bot apply {'--model a.b ' * 40}--plan-id 9f3c21aa01bc"
    assert f"    {command}\n" in render_plain(f"```text\n{command}\n```\n", colour=colour, width=60)


def test_action__does_not_load_what_draws_pages() -> None:
    """A review in the Action starts sooner and takes less memory."""
    program = (
        "import pkgutil, sys, ci_bot.bot.handlers as handlers\n"
        "from ci_bot.bot.cli import command_line\n"
        "for each in pkgutil.walk_packages(handlers.__path__, handlers.__name__ + '.'):\n"
        "    __import__(each.name)\n"
        "from ci_bot.bot.report import describe_error, render_markdown_text, render_review_comment\n"
        "print(sorted({'markdown_it', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
