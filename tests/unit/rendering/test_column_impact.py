"""The column impact in the comment: one small table, and notes in the lineage."""

from __future__ import annotations

from hypothesis import given

from ci_bot.bot.report.markdown.review_comment import render_review
from ci_bot.bot.report.model.column_impact import (
    list_impact_rows,
    make_lineage_notes,
    reads_nothing,
)
from ci_bot.bot.report.model.lineage import draw_lineage
from ci_bot.protocol.plan import Lineage, LineageNode
from ci_bot.protocol.review_report import ChangedPart, Impact, IndirectModel, ReachedModel
from tests.factories import make_context, make_report
from tests.unit.rendering.dom import assert_inert
from tests.unit.rendering.evil import TEXTS


def part(column: str | None, *reached: ReachedModel, **more: object) -> ChangedPart:
    values = {"model": "stg.orders", "column": column, "how": "computed", "reached": list(reached)}
    return ChangedPart(**values | more)


REVENUE = ReachedModel(model="mart.revenue", columns=["total"], rows=False)
PAID = ReachedModel(model="mart.paid", columns=[], rows=True)
IMPACT = Impact(
    changed=[
        part("amount", REVENUE, PAID),
        part("tax", REVENUE, PAID),
        part("note"),
        part(None, PAID, how="rows"),
        part("old", how="dropped"),
        part(None, model="mart.scores", how="unknown"),
    ],
    indirect=[
        IndirectModel(model="mart.revenue", reached="yes", why="Reads it."),
        IndirectModel(model="mart.names", reached="no", why="Reads nothing that changed."),
        IndirectModel(model="mart.scores", reached="unknown", why="It is a Python model."),
    ],
)


def comment(impact: Impact) -> str:
    return render_review(make_report(impact=impact), make_context()).text


def test_rows__columns_that_reach_the_same_share_one() -> None:
    rows = list_impact_rows(IMPACT)
    assert [(row.columns, row.how) for row in rows] == [
        (("amount", "tax"), "computed"),
        ((), "rows"),
        (("note",), "computed"),
        (("old",), "dropped"),
        ((), "unknown"),
    ]


def test_rows__leave_out_what_is_not_the_pull_requests() -> None:
    assert [row.model for row in list_impact_rows(IMPACT, {"stg.orders"})] == ["mart.scores"]


def test_comment__says_what_each_change_reaches() -> None:
    text = comment(IMPACT)
    reached = "`mart.revenue` (`total`), `mart.paid` (rows)"
    assert f"| `stg.orders`: `amount`, `tax` | computed differently | {reached} |" in text
    assert "| `stg.orders` | other rows | `mart.paid` (rows) |" in text
    assert "| `stg.orders`: `note` | computed differently | nothing below it |" in text
    assert "| `mart.scores` | cannot be known | nothing below it |" in text


def test_comment__counts_what_is_not_listed() -> None:
    many = [ReachedModel(model=f"m.m{n}", columns=["c"], rows=False) for n in range(9)]
    impact = Impact(changed=[part("amount", *many, more_models=5)], more_changed=7)
    text = comment(impact)
    assert "`m.m5` (`c`) and 8 more |" in text
    assert "7 further changes not listed" in text


def test_comment__names_rebuilds_that_read_nothing_that_changes() -> None:
    impact = Impact(
        changed=[part("amount")],
        indirect=[IndirectModel(model="mart.revenue", reached="no", why="Reads nothing.")],
    )
    assert "**Rebuilt but not affected** (1): `mart.revenue`." in comment(impact)
    assert reads_nothing(impact, ["another.table"]) == []


def test_comment__without_an_impact_has_no_section() -> None:
    text = comment(Impact())
    assert "What reads the columns" not in text
    assert "Rebuilt but not affected" not in text


def test_notes__say_what_changes_and_what_is_reached() -> None:
    assert make_lineage_notes(IMPACT) == {
        "stg.orders": "rows, amount, tax, note +1",
        "mart.revenue": "total",
        "mart.paid": "rows",
        "mart.names": "reads no change",
        "mart.scores": "?",
    }


def test_notes__are_none_where_nothing_is_reached() -> None:
    assert make_lineage_notes(Impact(changed=[part("amount")])) == {}


def test_draw__notes_stand_below_the_names() -> None:
    lineage = Lineage(
        nodes=[
            LineageNode(model="stg.orders", change="direct"),
            LineageNode(model="mart.revenue", change="indirect"),
        ],
        edges=[("stg.orders", "mart.revenue")],
    )
    drawn = draw_lineage(lineage, notes={"mart.revenue": "total"})
    assert drawn is not None
    assert 'n0["stg.orders"]:::direct' in drawn.text
    assert 'n1["mart.revenue<br/>total"]:::indirect' in drawn.text


@given(text=TEXTS)
def test_comment__names_of_columns_and_models_stay_inert(text: str) -> None:
    name = text.encode(errors="replace").decode()[:1_000] or "c"
    reached = ReachedModel(model=name, columns=[name], rows=True)
    impact = Impact(
        changed=[part(name, reached, model=name)],
        indirect=[IndirectModel(model=name, reached="no", why="Reads nothing.")],
    )
    assert_inert(comment(impact).split("-->", 1)[-1])
