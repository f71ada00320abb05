"""What a pull request hides behind a plan that fails, or behind one line of SQL, is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scene import PROJECT, Scene
from tests.projects import Shop

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Put together here, so that no scanner takes this file for one with a key in it.
KEY = "sk_live_" + "4f9c2b7d1e8a6053c1d2"


def leak_and_break(shop: Shop) -> None:
    """A key in a note, and a model that does not parse."""
    shop.write("notes.md", f"# Notes\n\nUse {KEY} for now.\n")
    shop.edit("models/revenue.sql", "SELECT", "SELECT FROM (")


@pytest.mark.night
def test_leaked_key__beside_a_plan_that_failed(scene: Scene) -> None:
    change = scene.open("leak", leak_and_break)

    outcome = change.review()

    assert outcome.exit_code == 1
    assert outcome.outputs["decision"] == "no_go"
    assert KEY not in outcome.readable
    comment = change.sticky()
    assert KEY not in comment
    assert "hardcoded-secret" in comment
    assert "Failed to load model" in comment, "the plan's failure is told too"
    checks = [w.request.body for w in outcome.writes if w.request.target.endswith("/check-runs")]
    assert any(b"hardcoded-secret" in body and b"notes.md" in body for body in checks)
    found = [r for r in outcome.document("report")["risks"] if r["rule"] == "hardcoded-secret"]
    assert [(r["path"], r["line"]) for r in found] == [(f"{PROJECT}/notes.md", 3)]


@pytest.mark.parametrize(
    "payload",
    [
        "setattr(__import__('ci_bot.worker.rules.changes.protection', fromlist=['x']), 'judged', "
        "lambda *a: None)",
        "__import__('pathlib').Path('RAN').touch()",
    ],
    ids=["switches a rule off", "runs a program"],
)
@pytest.mark.by_day(1)
def test_one_line_of_sql__runs_nothing_and_switches_no_rule_off(
    scene: Scene, tmp_path: Path, payload: str
) -> None:
    ran = tmp_path / "ran"
    text = f"`a' + (str({payload.replace('RAN', str(ran))}) and '') + 'b`"

    def lie(shop: Shop) -> None:
        shop.edit(
            "models/revenue.sql", "AS revenue", f"AS revenue,\n  @IF({text} IS NULL, 1, 1) AS x"
        )
        model = shop.project / "models" / "revenue.sql"
        model.write_text(f"{model.read_text().rstrip()};\n\nDROP TABLE shop.orders\n")

    change = scene.open("lie", lie)

    outcome = change.review()

    assert not ran.exists()
    assert outcome.outputs["decision"] == "no_go"
    assert outcome.exit_code == 1
    comment = change.sticky()
    assert "macro-runs-python" in comment
    assert f"{PROJECT}/models/revenue.sql" in comment
    assert "Do not load this branch" in comment
