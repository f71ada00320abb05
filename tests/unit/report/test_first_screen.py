"""The first screen of a review: short, each thing once, and readable on a phone."""

from __future__ import annotations

import re

import pytest

from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.markdown.marker import decode_comment_marker
from ci_bot.bot.report.markdown_text import shorten_prose
from ci_bot.bot.report.model.headline import make_headline_view
from ci_bot.bot.report.words import CUT_OFF, unify_model_names_in_text
from ci_bot.protocol.base import Failure
from ci_bot.protocol.plan import ColumnChange, Cost, LineageNode, ProdPlan
from ci_bot.protocol.review_report import ChangedPart, Impact, IndirectModel, ReachedModel, Report
from ci_bot.protocol.rules import RULES
from tests.conftest import REPOSITORY
from tests.factories import make_backfill, make_change, make_context, make_report, make_risk
from tests.golden.samples import SAMPLES, report
from tests.reports import large_report
from tests.unit.report.dom import RULES_URL, parse
from tests.unit.report.first_screen import above, folds, sentence, words

REVIEWS = (
    *("small_change", "small_go", "forward_only_reader", "leaked_key", "refused_plan"),
    *("base_branch", "destructive_change", "wide_change", "failed_plan", "base_broken"),
)
MOST_WORDS = {"go": 130, "review": 220, "no_go": 220}
RECORDED = {"small_go": "failing_audit"}


def recorded(name: str) -> Report:
    return report(RECORDED.get(name, name))


@pytest.mark.parametrize("name", REVIEWS)
def test_first_screen__is_short(name: str) -> None:
    comment = SAMPLES[name]()
    marker = decode_comment_marker(comment)
    assert marker is not None
    assert marker.decision is not None
    assert words(comment) <= MOST_WORDS[marker.decision]
    assert folds(comment) <= 4


def test_words__are_counted_in_texts_tables_and_pictures() -> None:
    picture = '```mermaid\nflowchart LR\n  n0["a.b<br/>x#44; y"]:::direct\n```'
    text = f"<!-- m -->\n**Two words** of `four`\n\n{picture}\n\n| a |\n|--|\n| b |\n\n<details>no"
    assert words(text) == 4 + 3 + 2
    assert folds("<details>\n<details>\n</details>\n</details>\n<details>\n</details>") == 2


@pytest.mark.parametrize("name", REVIEWS)
def test_first_screen__has_at_most_one_picture_and_one_narrow_table(name: str) -> None:
    top = above(SAMPLES[name]())
    page = parse(top)
    assert top.count("```mermaid") <= 1
    assert page.tags["table"] <= 1
    # At 400 px a column has room for some 13 letters that cannot be broken.
    cells = [text for path, text in page.texts if {"td", "th"} & set(path)]
    assert page.tags["th"] <= 3
    assert all(len(word) <= 13 for cell in cells for word in re.split(r"[\s-]+", cell))


@pytest.mark.parametrize("name", REVIEWS)
def test_comment__says_no_evidence_twice(name: str) -> None:
    plain = SAMPLES[name]().partition("<summary>The last plan")[0].replace("`", "")
    for risk in recorded(name).risks:
        assert plain.count(risk.evidence.replace("`", "")) <= 1, risk.evidence


@pytest.mark.parametrize("name", REVIEWS)
def test_rules__are_links_to_their_pages_at_the_actions_own_tag(name: str) -> None:
    text = SAMPLES[name]().partition("\n")[2]
    used = set(re.findall(r"`([A-Za-z0-9-]+)`", text)) & RULES.keys()
    words = re.findall(rf"\[why(?: \d)?\]\({re.escape(RULES_URL)}([A-Za-z0-9-]+)\.md\)", text)
    assert set(words) <= RULES.keys()
    assert used or words or name in ("small_go", "wide_change")
    for id_ in used:
        shown = len(re.findall(rf"`{id_}`", text))
        assert shown == text.count(f"[`{id_}`]({RULES_URL}{id_}.md)"), id_


def test_rules__of_the_linter_have_no_page_and_a_laptop_has_no_links() -> None:
    risk = make_risk("select-star", severity="high")
    url = "https://github.com/octo/x/blob/v1/docs/rules"
    linked = render_review_comment(make_report(risks=[risk]), make_context(rules_url=url)).text
    assert f"[why]({url}/select-star.md)" in linked
    other = make_report(risks=[make_risk("no-such-rule")])
    assert "no-such-rule.md" not in render_review_comment(other, make_context(rules_url=url)).text
    assert "docs/rules" not in render_review_comment(make_report(risks=[risk]), make_context()).text


def test_last_line__leads_to_the_page_that_explains_the_comment() -> None:
    url = "https://github.com/octo/action/blob/v1.2.3/docs/rules"
    guide = "https://github.com/octo/action/blob/v1.2.3/docs/reading-the-comment.md"
    last = render_review_comment(make_report(), make_context(rules_url=url)).text.splitlines()[-1]
    assert f"[How to read this comment]({guide})" in last
    assert (REPOSITORY / "docs" / "reading-the-comment.md").is_file()
    assert (
        "How to read" not in render_review_comment(make_report(), make_context(rules_url=None)).text
    )


def test_counts__of_tables_agree_in_sentence_table_and_fold() -> None:
    text = SAMPLES["small_change"]()
    top = above(text)
    assert re.search(r"\| Incremental \| 365 days since ", top)
    assert "| Whole tables | 3 | 3 |" in top
    assert "| Views | 1 | 1 |" in top
    assert text.count("**4 tables, 368 intervals**") == 2, "1 + 3 tables, 365 + 3 intervals"


def test_not_checked__is_one_line_and_no_finding() -> None:
    text = SAMPLES["small_change"]()
    assert "⬜ not checked: audits, cost, data diff\n" in text
    assert "R10-not-checked" not in text


def test_not_checked__files_are_named_below() -> None:
    about = {"severity": "info", "model": None, "path": None, "line": None}
    evidence = "Too large to be read: 1 changed file (`a.sql`)."
    large = make_risk("R10-not-checked", subject="large files", evidence=evidence, **about)
    text = render_review_comment(make_report(risks=[large]), make_context()).text
    assert "⬜ not checked: large files" in above(text)
    assert text.count("1 changed file (`a.sql`)") == 1


def test_time__is_in_words_and_a_part_is_a_lower_bound() -> None:
    cost = Cost(
        intervals=4,
        batches=4,
        tables_rebuilt=0,
        tables=4,
        unknown=["a.b"],
        executor_hours_mid=0.25,
        price=3.1,
        basis="b",
    )
    text = render_review_comment(make_report(cost=cost), make_context()).text
    assert "| Executor time | at least 15 min, at least 3.10 | – |" in text


def test_picture__shows_columns_and_dashes_what_keeps_its_history() -> None:
    top = above(SAMPLES["forward_only_reader"]())
    assert 'n0["marts.daily_carrier_performance<br/>late_arrivals"]:::direct' in top
    assert "marts.late_days<br/>late_arrivals#44; new data only" in top
    assert "class n2 kept" in top
    assert "dashed: forward-only" in top
    assert "staging.flights" not in top, "what the change reads does not change"


def test_picture__is_left_out_of_a_go_and_of_what_is_too_large() -> None:
    assert "```mermaid" not in above(SAMPLES["small_go"]())
    assert "```mermaid" not in above(SAMPLES["wide_change"]())
    assert "```mermaid" in above(render_review_comment(make_report(), make_context()).text)


def test_picture__of_twelve_models_is_the_largest() -> None:
    def top(readers: int) -> str:
        names = [f"mart.reader_{number}" for number in range(readers)]
        lineage = make_report().lineage.model_copy(
            update={
                "nodes": [LineageNode(model="stg.orders", change="direct")]
                + [LineageNode(model=name, change="indirect") for name in names],
                "edges": [("stg.orders", name) for name in names],
            }
        )
        return above(render_review_comment(make_report(lineage=lineage), make_context()).text)

    assert "```mermaid" in top(11)
    assert "```mermaid" not in top(12)


# ------------------------------------------------------------------------- things to fix


def test_fixes__of_one_cause_are_one_thing_and_the_key_comes_first() -> None:
    comment = SAMPLES["leaked_key"]()
    top = above(comment)
    assert "## 🔴 No-Go · 2 things to fix · " in top
    first, second = re.findall(r"^1\. (.*)$", top, re.MULTILINE)
    assert first.startswith("🔑 [`config.yaml:56`](https://github.com/octo/flights/blob/")
    assert "#L56)" in first
    assert "**Revoke it now** at its issuer" in first
    assert "Drops `scheduled_flights`, still read by `marts.route_ranking`." in second
    for rule in ("R04-column-dropped", "missing-column", "R01-lint-error", "R02-test-fails"):
        assert f"/{rule}.md)" in second
    assert '"spark_catalog"' not in top


def test_fixes__of_two_causes_stay_two() -> None:
    risks = [
        make_risk("R02-test-fails", severity="blocker", model="a.b", evidence="Test `x` fails."),
        make_risk("R02-test-fails", severity="blocker", model="a.c", evidence="Test `y` fails."),
    ]
    text = render_review_comment(make_report(decision="no_go", risks=risks), make_context()).text
    assert "2 things to fix" in text
    assert "Test `x` fails." in text
    assert "Test `y` fails." in text


def test_fixes__a_name_inside_another_name_is_no_cause() -> None:
    gone = ColumnChange(name="total", before="INT", after=None)
    risks = [
        make_risk("R04-column-dropped", severity="blocker", evidence="Drops `total`."),
        make_risk("R02-test-fails", severity="blocker", evidence="`subtotal`: expected 2."),
        make_risk("missing-column", severity="blocker", evidence="`other.total` is not there."),
    ]
    changes = [make_change(columns=[gone])]
    document = make_report(decision="no_go", risks=risks, changes=changes)
    text = render_review_comment(document, make_context()).text
    assert "3 things to fix" in text


@pytest.mark.parametrize(
    ("rule", "clears_when", "expected"),
    [
        ("R01-load-failed", "`ci-bot doctor` says more.", "`ci-bot doctor` says more. ("),
        ("R01-load-failed", "the project loads", "Fixed when the project loads. ("),
        ("R05", "`on_destructive_change` allows it", "Fixed when `on_destructive_change` allows"),
    ],
)
def test_fixes__say_how_in_a_sentence(rule: str, clears_when: str, expected: str) -> None:
    risks = [make_risk(rule, severity="blocker", clears_when=clears_when)]
    text = render_review_comment(make_report(decision="no_go", risks=risks), make_context()).text
    assert expected in text


def test_refused_plan__keeps_the_statement_and_the_column_once() -> None:
    comment = SAMPLES["refused_plan"]()
    assert "**There is no plan: SQLMesh refuses it.**" in above(comment)
    assert "would be dropped or retyped" in above(comment)
    said = comment.partition("<summary>What SQLMesh said</summary>")[2].partition("</details>")[0]
    assert "ALTER TABLE `spark_catalog`.`marts`.`late_days` DROP COLUMN late_arrivals" in said
    assert comment.count("Plan requires a destructive change") == 1
    assert "**Revoke it now**" in above(comment)


# ------------------------------------------------------------------------- the sentence


def told(**overrides: object) -> str:
    return make_headline_view(make_report(**overrides)).sentence


def added(name: str) -> ColumnChange:
    return ColumnChange(name=name, before=None, after="INT")


def part(how: str, column: str | None = None, **more: object) -> ChangedPart:
    values = {"model": "stg.orders", "column": column, "how": how}
    return ChangedPart.model_validate(values | more)


HARMLESS = {"category": "non_breaking"}
REACHED = [ReachedModel(model=f"m.m{n}", columns=["x"], rows=False) for n in range(4)]
UNKNOWN = [IndirectModel(model="m.python", reached="unknown", why="Python.")]
HISTORY = "for all of its history"


@pytest.mark.parametrize(
    ("expected", "document"),
    [
        (
            f"Past numbers may change: `stg.orders` is computed again {HISTORY}; 2 models are "
            "rebuilt.",
            {"impact": Impact()},
        ),
        (
            f"Past numbers change: `amount` in `stg.orders` is computed differently {HISTORY}; 4 "
            "other models read what changes.",
            {"impact": Impact(changed=[part("computed", "amount", reached=REACHED)])},
        ),
        (
            f"Past numbers change: `stg.orders` gets other rows {HISTORY}; no other model reads "
            "what changes, and 2 models are rebuilt anyway.",
            {"impact": Impact(changed=[part("rows")])},
        ),
        (
            f"Past numbers change: `a` and `b` in `stg.orders` are computed differently {HISTORY}; "
            "1 other model reads what changes, and 1 more model is rebuilt anyway.",
            {
                "impact": Impact(
                    changed=[
                        part("computed", "a", reached=REACHED[:1]),
                        part("computed", "b", reached=REACHED[:1]),
                    ]
                )
            },
        ),
        (
            "Past numbers change: `stg.orders` gets other rows; 1 other model reads what changes, "
            "and no other model is rebuilt.",
            {
                "changes": [
                    make_change(**HARMLESS),
                    make_change("m.m0", change="indirect", category="indirect_non_breaking"),
                ],
                "impact": Impact(changed=[part("rows", reached=REACHED[:1])]),
                "prod_plan": None,
            },
        ),
        (
            "Past numbers change: `stg.orders` gets 1 more row; no other model reads what changes.",
            {
                "changes": [make_change(kind="SEED")],
                "impact": Impact(changed=[part("rows", why="It gets 1 more row.")]),
            },
        ),
        (
            "Past numbers change: `price` in `stg.orders` holds other values; no other model reads "
            "what changes.",
            {
                "changes": [make_change(kind="SEED")],
                "impact": Impact(changed=[part("computed", "price")]),
            },
        ),
        (
            "`stg.orders` is built again; no column or row is defined differently.",
            {"changes": [make_change(**HARMLESS)]},
        ),
        (
            "Past numbers may change: what changes in `stg.orders` is not known; 1 other model may "
            "read what changes, and 1 more model is rebuilt anyway.",
            {"impact": Impact(changed=[part("unknown", why="Python.")], indirect=UNKNOWN)},
        ),
        (
            "Adds the columns `a` and `b` to `stg.orders`; nothing that exists today changes.",
            {"changes": [make_change(columns=[added("a"), added("b")], **HARMLESS)]},
        ),
        (
            "Adds the model `a.b`; nothing that exists today changes, and `prod` has nothing to "
            "build.",
            {
                "changes": [make_change("a.b", change="added", category=None)],
                "prod_plan": ProdPlan(changes=1, backfill=[], would_fail=False),
            },
        ),
        (
            "Removes the model `a.b`, which 2 models still read.",
            {"changes": [make_change("a.b", change="removed", readers=["a.c", "a.d"])]},
        ),
        (
            "Changes the type of `a` in `stg.orders` from `INT` to `STRING`.",
            {
                "changes": [
                    make_change(
                        columns=[ColumnChange(name="a", before="INT", after="STRING")], **HARMLESS
                    )
                ]
            },
        ),
        (
            "`stg.orders` changes for new data only: history keeps the old numbers.",
            {"changes": [make_change(category="forward_only")]},
        ),
        (
            "Changes only the metadata of `a.b`: no data is built again.",
            {"changes": [make_change("a.b", change="metadata", category="metadata")]},
        ),
        (
            "No model changes here; 1 model differs because of the base branch.",
            {"changes": [make_change(from_base=True)]},
        ),
        ("No model changes.", {"changes": []}),
    ],
)
def test_sentence__is_about_this_change(expected: str, document: dict[str, object]) -> None:
    assert told(**document) == expected


def test_sentence__leads_with_the_weightiest_and_counts_the_rest() -> None:
    head = make_headline_view(report("small_change"))
    assert head.kind == "past"
    assert head.rest == "1 new column, 1 new model, 1 metadata-only change"
    assert sentence(SAMPLES["small_change"]()).startswith("Past numbers change: late_arrivals in")


def test_owner__is_asked_where_past_numbers_change() -> None:
    text = SAMPLES["forward_only_reader"]()
    assert "Owner `network-planning`: is that intended? ([why](" in text
    assert "is that intended" not in SAMPLES["small_go"]()


def test_review__that_the_bot_asks_for_says_why() -> None:
    document = make_report(
        changes=[make_change("a.b", change="added", category=None)],
        risks=[],
        reasons=["This report was computed in the pull request's own run."],
    )
    text = above(render_review_comment(document, make_context()).text)
    assert "computed in the pull request's own run." in text


# ------------------------------------------------------------------------- words and sizes


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("one two three", 20, "one two three"),
        ("one two three", 11, "one two …"),
        ("the table `stg.orders` is rebuilt", 18, "the table …"),
        ("nospacesatall", 6, "nospa…"),
    ],
)
def test_shortened__never_cuts_a_word_or_a_name(text: str, limit: int, expected: str) -> None:
    assert shorten_prose(text, limit) == expected


def test_spelling__of_a_model_is_one() -> None:
    text = """Unknown column for model '"spark_catalog"."marts"."route"', and "a"."b"."""
    assert unify_model_names_in_text(text, {"marts.route"}) == (
        'Unknown column for model `marts.route`, and "a"."b".'
    )


def test_forward_only__and_daily_work_are_told_apart() -> None:
    backfill = [make_backfill("a.b", preview=True, intervals=1), make_backfill("a.c", intervals=2)]
    plan = ProdPlan(changes=2, backfill=[], full_backfill=backfill[1:], would_fail=False)
    text = render_review_comment(
        make_report(backfill=backfill, prod_plan=plan), make_context()
    ).text
    assert re.search(r"\| Forward-only \| preview, 1 interval since \S+ \| history stays \|", text)
    assert re.search(r"\| Incremental \| 2 intervals since ", text)


def test_thousand_models__keep_the_first_screen() -> None:
    comment = render_review_comment(large_report(1_000), make_context()).text
    assert len(comment.encode()) <= 60_000
    assert words(comment) <= MOST_WORDS["review"]
    assert folds(comment) <= 4


@pytest.mark.parametrize(("reason", "why"), sorted(CUT_OFF.items()))
def test_no_plan__of_a_run_that_was_cut_off_blames_no_sqlmesh(reason: str, why: str) -> None:
    failure = Failure(stage="plan", reason_code=reason, exit_code=1, message="It ended.")
    cut_off = make_report(failure=failure, decision="no_go")
    assert make_headline_view(cut_off).sentence == f"There is no plan: {why}."
    comment = render_review_comment(cut_off, make_context()).text
    assert "SQLMesh" not in above(comment)
    assert "| Project loads | ⬜ not known |" in comment
