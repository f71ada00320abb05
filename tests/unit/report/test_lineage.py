"""What a change reaches: the mermaid graph, and the columns as tables and notes."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given

from ci_bot.bot.report.markdown.comments import render_review_comment
from ci_bot.bot.report.model.lineage import (
    MAX_LINEAGE_NODES,
    draw_lineage_view,
    list_impact_row_views,
    list_models_that_read_nothing,
    make_lineage_node_label,
    make_lineage_notes,
)
from ci_bot.protocol.plan import Lineage, LineageNode
from ci_bot.protocol.review_report import ChangedPart, Impact, IndirectModel, ReachedModel
from tests.factories import make_context, make_report
from tests.reports import large_report
from tests.unit.report.dom import assert_inert
from tests.unit.report.evil import TEXTS

_NODE = re.compile(r'^  n\d+\["(.+)"\]:::(\w+)$')
_EDGE = re.compile(r"^  (n\d+) --> (n\d+)$")


def chain(*names: str, change: str | None = "indirect") -> Lineage:
    nodes = [LineageNode(model=names[0], change="direct")]
    nodes += [LineageNode(model=name, change=change) for name in names[1:]]
    return Lineage(nodes=nodes, edges=list(pairwise(names)))


def lines(lineage: Lineage, limit: int = MAX_LINEAGE_NODES) -> list[str]:
    drawn = draw_lineage_view(lineage, limit)
    assert drawn is not None
    return drawn.text.split("\n")[1:-1]


def test_draw__colours_say_what_happened() -> None:
    lineage = Lineage(
        nodes=[
            LineageNode(model="a", change="direct"),
            LineageNode(model="b", change="indirect"),
            LineageNode(model="c", change="added"),
            LineageNode(model="d", change="removed"),
            LineageNode(model="e", change=None),
        ],
        edges=[("a", "b"), ("b", "e")],
    )
    text = "\n".join(lines(lineage))
    for name, style in (("a", "direct"), ("b", "indirect"), ("c", "added"), ("d", "removed")):
        assert f'["{name}"]:::{style}' in text
        assert f"classDef {style} " in text
    assert "stroke-dasharray" in text
    drawn = draw_lineage_view(lineage)
    assert drawn is not None
    assert "removed" in drawn.legend


def test_draw__stops_at_forty_models_and_counts_what_is_hidden() -> None:
    drawn = draw_lineage_view(large_report(1_000).lineage)
    assert drawn is not None
    assert drawn.drawn == 40
    assert drawn.total == 1_000
    assert len(drawn.text) < 50_000
    assert re.search(r"\(\+\d\)", drawn.text)


def test_draw__near_readers_come_before_far_ones() -> None:
    names = [f"m{index}" for index in range(9)]
    shown = [hit[1] for line in lines(chain(*names), 4) if (hit := _NODE.match(line))]
    assert shown == ["m0", "m1", "m2", "m3 (+1)"]


def test_draw__edges_join_drawn_models_only() -> None:
    found = lines(large_report(300).lineage)
    ids = {line.split("[")[0].strip() for line in found if _NODE.match(line)}
    for line in found:
        if hit := _EDGE.match(line):
            assert {hit[1], hit[2]} <= ids


def test_draw__a_lone_model_is_no_graph() -> None:
    assert draw_lineage_view(Lineage(nodes=[LineageNode(model="a", change="direct")])) is None
    assert draw_lineage_view(Lineage()) is None


def test_draw__edges_to_unknown_models_and_cycles_do_no_harm() -> None:
    lineage = chain("a", "b")
    lineage = lineage.model_copy(update={"edges": [("a", "b"), ("b", "a"), ("a", "ghost")]})
    assert len([line for line in lines(lineage) if _EDGE.match(line)]) == 2


@given(text=TEXTS)
def test_label__holds_nothing_that_mermaid_reads(text: str) -> None:
    assert re.fullmatch(r"(?:[A-Za-z0-9_. ]|#\d+;)+", make_lineage_node_label(text))


@given(text=TEXTS)
def test_draw__every_line_keeps_its_form(text: str) -> None:
    # A contract takes no lone surrogate; `test_label` sees those.
    name = text.encode(errors="replace").decode()[:1_000] or "b"
    drawn = draw_lineage_view(chain("first model", name, "last model"))
    assert drawn is not None
    for line in drawn.text.split("\n")[2:-1]:
        assert _NODE.match(line) or _EDGE.match(line) or line.startswith("  classDef ")
    assert_inert(drawn.text)


def test_label__its_check_fails_without_it() -> None:
    assert not re.fullmatch(r"(?:[A-Za-z0-9_. ]|#\d+;)*", 'a"]; click n0 "javascript:alert(1)"')


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
    return render_review_comment(make_report(impact=impact), make_context()).text


def test_rows__columns_that_reach_the_same_share_one() -> None:
    rows = list_impact_row_views(IMPACT)
    assert [(row.columns, row.how) for row in rows] == [
        (("amount", "tax"), "computed"),
        ((), "rows"),
        (("note",), "computed"),
        (("old",), "dropped"),
        ((), "unknown"),
    ]


def test_rows__leave_out_what_is_not_the_pull_requests() -> None:
    assert [row.model for row in list_impact_row_views(IMPACT, {"stg.orders"})] == ["mart.scores"]


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
    assert list_models_that_read_nothing(impact, ["another.table"]) == []


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
    drawn = draw_lineage_view(lineage, notes={"mart.revenue": "total"})
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
