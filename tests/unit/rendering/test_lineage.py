"""The mermaid graph: bounded, level by level, and no name can break out of its box."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given

from ci_bot.bot.report.model.lineage import MAX_LINEAGE_NODES, draw_lineage, make_node_label
from ci_bot.protocol.plan import Lineage, LineageNode
from tests.reports import large_report
from tests.unit.rendering.dom import assert_inert
from tests.unit.rendering.evil import TEXTS

_NODE = re.compile(r'^  n\d+\["(.+)"\]:::(\w+)$')
_EDGE = re.compile(r"^  (n\d+) --> (n\d+)$")


def chain(*names: str, change: str | None = "indirect") -> Lineage:
    nodes = [LineageNode(model=names[0], change="direct")]
    nodes += [LineageNode(model=name, change=change) for name in names[1:]]
    return Lineage(nodes=nodes, edges=list(pairwise(names)))


def lines(lineage: Lineage, limit: int = MAX_LINEAGE_NODES) -> list[str]:
    drawn = draw_lineage(lineage, limit)
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
    drawn = draw_lineage(lineage)
    assert drawn is not None
    assert "removed" in drawn.legend


def test_draw__stops_at_forty_models_and_counts_what_is_hidden() -> None:
    drawn = draw_lineage(large_report(1_000).lineage)
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
    assert draw_lineage(Lineage(nodes=[LineageNode(model="a", change="direct")])) is None
    assert draw_lineage(Lineage()) is None


def test_draw__edges_to_unknown_models_and_cycles_do_no_harm() -> None:
    lineage = chain("a", "b")
    lineage = lineage.model_copy(update={"edges": [("a", "b"), ("b", "a"), ("a", "ghost")]})
    assert len([line for line in lines(lineage) if _EDGE.match(line)]) == 2


@given(text=TEXTS)
def test_label__holds_nothing_that_mermaid_reads(text: str) -> None:
    assert re.fullmatch(r"(?:[A-Za-z0-9_. ]|#\d+;)+", make_node_label(text))


@given(text=TEXTS)
def test_draw__every_line_keeps_its_form(text: str) -> None:
    # A contract takes no lone surrogate; `test_label` sees those.
    name = text.encode(errors="replace").decode()[:1_000] or "b"
    drawn = draw_lineage(chain("first model", name, "last model"))
    assert drawn is not None
    for line in drawn.text.split("\n")[2:-1]:
        assert _NODE.match(line) or _EDGE.match(line) or line.startswith("  classDef ")
    assert_inert(drawn.text)


def test_label__its_check_fails_without_it() -> None:
    assert not re.fullmatch(r"(?:[A-Za-z0-9_. ]|#\d+;)*", 'a"]; click n0 "javascript:alert(1)"')
