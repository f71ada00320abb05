"""A team's own words: what its policy may say, and that GitHub's parser agrees that it is harmless."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_bot.bot.report.markdown.budget import COMMENT_BYTES
from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.markdown.templating import render_team_message, render_team_words
from ci_bot.protocol.comment import MOST_CHARACTERS, find_unfit_part_of_team_words
from ci_bot.protocol.review_report import PolicyUsed, Report
from tests.factories import PLAN, make_context, make_report, make_risk
from tests.golden.samples import report
from tests.unit.report.dom import parse
from tests.unit.report.evil import CORPUS

TAKEN = [
    "## Data platform\n\nAsk in **#data-review**, or read the [runbook](https://wiki.acme.example/x).",
    "- one\n- two\n\n> a quote\n\n1. first",
    "Write to data@acme.example.",
    "```\n/sqlmesh apply {plan}\n```\n\nIt is built in {environment}; the decision is {decision}.",
    "```sql\nSELECT 1 -- `x`\n```",
    "| a | b |\n|--|--|\n| 1 | 2 |",
    "5 > 4, AT&T, a $5 fee",
]
REFUSED = [
    ("Ask @\\_team", "must mention nobody"),
    ("", "say something"),
    ("x" * (MOST_CHARACTERS + 1), "at most 2,000 characters"),
    ("<b>bold</b>", "no HTML"),
    ("<!-- open", "no HTML"),
    ("<details><summary>x", "no HTML"),
    ("<https://acme.example>", "no HTML"),
    ("&#64;octocat", "no HTML entity"),
    ("&commat;octocat", "no HTML entity"),
    ("Ask @octocat", "mention nobody"),
    ("\\@octocat", "mention nobody"),
    ("`@acme/data`", "mention nobody"),
    ("_@octocat_", "mention nobody"),
    ("![pixel](https://evil.example/p.png)", "no picture"),
    ("[Go]: https://evil.example", "no reference"),
    ("> [^1]: a note", "no reference"),
    ("$$\nx", "no `$$`"),
    ("```\nnever closed", "close its fence"),
    ("```\n```sql\n```", "close a fence"),
    ("```sql title\n```", "start of a line"),
    ("- ```\n  x", "start of a line"),
    ("    ```", "start of a line"),
    ("~~~\nx", "by backticks"),
    ("> ~~~\nx", "by backticks"),
    ("\u202egnp.exe", "no invisible"),
    ("tab\there", "no invisible"),
    ("{pr}", "no variables but {plan}, {environment}, {decision}"),
]
# GitHub's own: not behind a letter, a digit or `_`, which Markdown may have taken away.
MENTION = re.compile(r"(?<!\w)@\w")
PIECES = st.sampled_from(
    [
        *("\n", "\n\n", "    ", "  ", "- ", "> ", "1. ", "# ", "---", "===", "|", "||", "\\", "*"),
        *("**", "_", "__", "~", "~~", "~~~", "`", "``", "```", "````", "sql", "[", "](", ")", "!"),
        *(
            "]:",
            "<",
            ">",
            "<!--",
            "-->",
            "<div",
            "</div>",
            "&",
            "&#64;",
            "@",
            "octocat",
            "a@b.example",
        ),
        *(
            "@octocat",
            "\\@octocat",
            "$$",
            "$",
            "{plan}",
            "{",
            "}",
            "{decision}",
            "word",
            "https://a.example",
            "#1",
            ":tada:",
        ),
    ]
)


@pytest.mark.parametrize("text", TAKEN)
def test_words__of_a_team__are_taken(text: str) -> None:
    assert find_unfit_part_of_team_words(text) is None


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_words__that_would_break_the_comment__are_refused_with_a_reason(
    text: str, why: str
) -> None:
    assert why in (find_unfit_part_of_team_words(text) or "")


@pytest.mark.parametrize("text", ["two\nlines", "a | b", "```x```", "", "@octocat"])
def test_message__is_one_line_that_fits_into_a_cell(text: str) -> None:
    assert find_unfit_part_of_team_words(text, one_line=True) is not None


def assert_inert(text: str) -> None:
    """What stands around the words is as without them, and nobody is mentioned."""
    page = parse(
        f"Before.\n\n{render_team_words(text, PLAN, 'pr_7', 'go')}\n\n## Decision\n\nAfter.\n"
    )
    assert (("h2",), "Decision") in page.texts, text
    assert (("p",), "After.") in page.texts, text
    assert not page.comments
    assert not {"script", "details", "div", "img"} & page.tags.keys()
    assert not [told for _, told in page.texts if MENTION.search(told)], text


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=14).map("".join))
def test_words__of_any_pieces__are_refused_or_inert(text: str) -> None:
    if find_unfit_part_of_team_words(text) is None:
        assert_inert(text)


@pytest.mark.parametrize("text", [*TAKEN, *CORPUS])
def test_words__that_somebody_else_wrote_into_a_report__are_inert(text: str) -> None:
    """A report is a file; what would not pass the policy's check is shown as plain words."""
    page = parse(f"a | b\n--|--\nx | {render_team_message(text)} z\n\n## Decision\n")
    assert (("h2",), "Decision") in page.texts
    assert page.tags["td"] == 2


def test_variables__are_filled_in_code_as_well_as_outside() -> None:
    text = "```\n/sqlmesh apply {plan}\n```\n{decision} in `{environment}`"
    filled = render_team_words(text, PLAN, "pr_7", "no_go")
    assert filled == f"```\n/sqlmesh apply {PLAN[:12]}\n```\nNo-Go in `pr_7`"
    assert render_team_words("{plan} {environment}", None, "a`b", "go") == "– –"


def reviewed(**words: str) -> Report:
    used = PolicyUsed(source="base", files=[".sqlmesh-review.yaml"], entries=1, **words)
    return make_report().model_copy(update={"policy": used})


def test_header_and_footer__stand_above_the_heading_and_at_the_end() -> None:
    report = reviewed(
        header="**Data platform**: {decision}", footer="Ask in [chat](https://a.example/c)."
    )
    lines = render_review_comment(report, make_context(phase="planned")).text.splitlines()
    told = [line for line in lines if line and not line.startswith("<!--")]
    assert told[0].startswith("**Data platform**: ")
    assert told[1].startswith("## ")
    assert told[-2] == "Ask in [chat](https://a.example/c)."


@pytest.mark.parametrize("words", ["x" * MOST_CHARACTERS, "😀" * MOST_CHARACTERS, "{plan} " * 285])
def test_words__of_full_length__leave_room_for_the_review(words: str) -> None:
    assert find_unfit_part_of_team_words(words) is None
    used = PolicyUsed(source="base", files=["x"], entries=1, header=words, footer=words)
    told = report("wide_change").model_copy(update={"policy": used})
    text = render_review_comment(told, make_context(phase="planned"), COMMENT_BYTES).text
    assert len(text.encode()) <= COMMENT_BYTES
    plain = render_review_comment(
        report("wide_change"), make_context(phase="planned"), COMMENT_BYTES
    ).text
    top = plain.partition("<details>")[0].splitlines()[1:]  # without the marker
    assert [line for line in top if line.startswith(("## ", "**", "1. "))]
    assert not [line for line in top if line not in text]


def test_message__stands_with_its_finding() -> None:
    said = "[The joins runbook](https://wiki.acme.example/joins) says whom to ask."
    risk = make_risk(rule="join-changed", message=said)
    report = make_report(risks=[risk]).model_copy(update={"decision": "review"})
    text = render_review_comment(report, make_context(phase="planned")).text
    assert text.count(said) == 1
    complete = render_review_comment(report, make_context(phase="planned"), None).text
    assert f"**Your team says:** {said}" in complete
