"""Places of a lineage: all apart, readers to the right, the same each time, and quickly."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from ci_bot.bot.report.html.models import COLUMN, ROW, place_models_in_html_picture
from tests.webpage_reports import large

NAMES = st.integers(0, 30).map(str)
EDGES = st.lists(st.tuples(NAMES, NAMES), max_size=80)


@given(st.lists(NAMES, max_size=30), EDGES)
def test_place__no_two_boxes_touch(nodes: list[str], edges: list[tuple[str, str]]) -> None:
    """Also with circles, loops, and edges whose ends are not there."""
    places = place_models_in_html_picture(nodes, edges)
    assert set(places) == set(nodes)
    found = list(places.values())
    for number, one in enumerate(found):
        for other in found[number + 1 :]:
            assert one.x != other.x or abs(one.y - other.y) >= ROW * 0.999


@given(EDGES)
def test_place__a_reader_stands_to_the_right(edges: list[tuple[str, str]]) -> None:
    forward = [(min(e), max(e)) for e in edges if e[0] != e[1]]
    nodes = sorted({name for edge in forward for name in edge})
    places = place_models_in_html_picture(nodes, forward)
    assert all(places[parent].x < places[reader].x for parent, reader in forward)
    assert place_models_in_html_picture(nodes, forward) == places


def test_place__a_chain_is_a_straight_line() -> None:
    places = place_models_in_html_picture(["a", "b", "c"], [("a", "b"), ("b", "c")])
    assert [places[name].x for name in "abc"] == [0.0, COLUMN, 2 * COLUMN]
    assert len({places[name].y for name in "abc"}) == 1


def test_place__a_source_stands_beside_its_reader() -> None:
    places = place_models_in_html_picture(
        ["a", "b", "c", "late"], [("a", "b"), ("b", "c"), ("late", "c")]
    )
    assert places["late"].x == places["b"].x


def test_place__a_crossing_that_need_not_be__is_not() -> None:
    places = place_models_in_html_picture(
        ["a", "b", "x", "y"], [("a", "y"), ("b", "x"), ("a", "x"), ("a", "y")]
    )
    straight = place_models_in_html_picture(["a", "b", "y", "x"], [("a", "y"), ("b", "x")])
    assert (straight["a"].y < straight["b"].y) == (straight["y"].y < straight["x"].y)
    assert len({(at.x, at.y) for at in places.values()}) == 4


def test_place__a_thousand_readers__do_not_make_a_tower() -> None:
    names = [str(number) for number in range(1_000)]
    places = place_models_in_html_picture(["source", *names], [("source", name) for name in names])
    wide = max(at.x for at in places.values())
    high = max(at.y for at in places.values()) - min(at.y for at in places.values())
    assert 0.5 < wide / high < 4


def test_place__five_thousand_models__take_no_time() -> None:
    lineage = large(5_000, 1).lineage
    names = [node.model for node in lineage.nodes]
    start = time.process_time()
    assert len(place_models_in_html_picture(names, lineage.edges)) == 5_000
    assert time.process_time() - start < 5
