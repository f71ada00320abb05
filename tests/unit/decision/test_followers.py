"""Which changed models follow a changed one, on shapes that real projects have."""

from __future__ import annotations

from ci_bot.bot.decision.risks import map_models_below
from ci_bot.protocol.plan import Lineage
from tests.unit.decision.facts import changed, facts


def test_followers__stop_at_a_model_that_does_not_change() -> None:
    changes = [
        changed("a.root"),
        changed("a.near", change="indirect", category="indirect_breaking"),
    ]
    edges = [("a.root", "a.near"), ("a.near", "a.same"), ("a.same", "a.far")]

    found = map_models_below(facts(changes=changes, lineage=Lineage(edges=edges)))

    assert found == {"a.root": {"a.near"}}


def test_followers__of_very_many_paths_are_counted_once_each() -> None:
    """Each step of the ladder doubles the paths: 2 to the power of 60 lead to its end."""
    steps = 60
    names = ["a.root"]
    edges = []
    for step in range(steps):
        left, right, end = (f"a.{side}{step}" for side in ("left", "right", "end"))
        edges += [(names[-1], left), (names[-1], right), (left, end), (right, end)]
        names += [left, right, end]
    below = [changed(name, change="indirect", category="indirect_breaking") for name in names[1:]]

    found = map_models_below(
        facts(changes=[changed("a.root"), *below], lineage=Lineage(edges=edges))
    )

    assert found == {"a.root": set(names[1:])}
