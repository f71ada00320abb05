"""The clock and chance that a macro or a variable puts into a query, which does not show them."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlmesh.core.macros import MacroRegistry, macro

from ci_bot.protocol.plan import Finding
from ci_bot.worker.rules import RuleInputs, find_project_findings
from tests.unit.rules.world import change, models, seen

HEAD = "MODEL (name mart.m, kind FULL);\n"
READS = HEAD + "SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > {0}"
PLAIN = READS.format("@recent(7)")
COUNT = itertools.count()
TODAY = """
from datetime import date, timedelta
from sqlmesh import macro

def first_day(days):
    return date.today() - timedelta(days=days)

@macro()
def recent(evaluator, days):
    return f"DATE '{first_day(int(str(days)))}'"
"""
FIXED = """
from sqlmesh import macro

@macro()
def recent(evaluator, days):
    return f"DATE '2024-01-{int(str(days)):02}'"
"""
FROM_RUN = """
from sqlmesh import macro

@macro()
def recent(evaluator, days):
    return f"@execution_ts - INTERVAL {days} DAYS"
"""
CHANCE = """
import random
from sqlmesh import macro

@macro()
def recent(evaluator, days):
    return f"DATE '2024-01-{random.randint(1, 28):02}'"
"""


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RuleInputs]:
    """A model and its macros, each before and after, as rules get them."""
    monkeypatch.setattr("tests.unit.rules.world.ROOT", tmp_path)
    (tmp_path / "macros").mkdir()

    def registry(code: str) -> MacroRegistry:
        (tmp_path / "macros" / "recent.py").write_text(code, encoding="utf-8")
        linecache.clearcache()  # the text of functions is read from the file
        name = f"macros_of_a_test_{next(COUNT)}"
        spec = importlib.util.spec_from_file_location(name, tmp_path / "macros" / "recent.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        standard = macro.get_registry()
        spec.loader.exec_module(module)
        found = macro.get_registry()
        macro.set_registry(standard)
        return found

    def look(before: tuple[str, str] | None, after: tuple[str, str]) -> RuleInputs:
        sides = [
            models({"models/m.sql": side[0]}, macros=registry(side[1])) if side else models({})
            for side in (before, after)
        ]
        inputs = change(
            {},
            {},
            other_before={"models/m.sql": before[0], "macros/recent.py": before[1]}
            if before
            else {},
            other_after={"models/m.sql": after[0], "macros/recent.py": after[1]},
        )
        return replace(inputs, before=sides[0], after=sides[1])

    return look


@pytest.fixture
def told(changed: Callable[..., RuleInputs]) -> Callable[..., list[Finding]]:
    """The findings on a model and its macros, each before and after."""

    def look(
        before: tuple[str, str] | None, after: tuple[str, str], rule: str = "current-time"
    ) -> list[Finding]:
        return seen(changed(before, after), rule)

    return look


def test_macro__that_reads_the_clock_in_a_helper(told: Callable[..., list[Finding]]) -> None:
    """The file says it where it changes as well; the model, where it begins to use the macro."""
    (found,) = told((READS.format("'2024-01-01'"), TODAY), (PLAIN, TODAY))
    assert (found.model, found.severity) == ("mart.m", "high")
    assert "`@first_day`" in found.evidence or "`@recent`" in found.evidence
    assert "`date.today`" in found.evidence


def test_macro__of_a_new_model(told: Callable[..., list[Finding]]) -> None:
    assert "mart.m" in [item.model for item in told(None, (PLAIN, TODAY))]


def test_macro__that_is_edited_says_it_once_and_of_its_file(
    told: Callable[..., list[Finding]],
) -> None:
    (found,) = told((PLAIN, FIXED), (PLAIN, TODAY))
    assert (found.model, found.path) == (None, "macros/recent.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((PLAIN, TODAY), (PLAIN.replace("o.order_id", "o.order_id, o.status"), TODAY)),
        ((PLAIN, TODAY), (PLAIN, FIXED)),
        ((READS.format("'2024-01-01'"), FIXED), (PLAIN, FIXED)),
        ((READS.format("'2024-01-01'"), FROM_RUN), (PLAIN, FROM_RUN)),
        # The macro is there, and another model's matter.
        ((READS.format("'2024-01-01'"), TODAY), (READS.format("'2024-01-02'"), TODAY)),
    ],
)
def test_macro__that_was_called_before_or_reads_nothing(
    told: Callable[..., list[Finding]], before: tuple[str, str], after: tuple[str, str]
) -> None:
    assert told(before, after) == []


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (CHANCE.replace("randint(1, 28)", "randint(1, 10**9)"), "not_tried"),
        (FIXED, "differs"),
    ],
)
def test_macro__of_chance_keeps_its_readers_from_the_judge(
    changed: Callable[..., RuleInputs], code: str, answer: str
) -> None:
    """Both versions would differ in what the macro wrote, and not in what the edit changes."""
    inputs = changed((PLAIN, code), (PLAIN + " AND o.order_id > 7", code))
    find_project_findings(inputs)
    (verdict,) = inputs.judged_models.found.values()
    assert verdict.verdict == answer
    assert (verdict.reason == "a macro that renders another text each time") == (code != FIXED)


def test_macro__of_chance(told: Callable[..., list[Finding]]) -> None:
    (found,) = told((READS.format("'2024-01-01'"), CHANCE), (PLAIN, CHANCE), "random")
    assert (found.model, found.severity) == ("mart.m", "high")


@pytest.mark.parametrize(
    "query",
    [
        HEAD + "@DEF(today, CURRENT_DATE());\n"
        "SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > @today",
        READS.format("@IF(@runtime_stage = 'evaluating', CURRENT_DATE(), '2024-01-01')"),
        READS.format("@SQL('now()')"),
        HEAD + "JINJA_QUERY_BEGIN;\nSELECT o.order_id FROM raw.orders AS o "
        "WHERE o.order_ts > current_date();\nJINJA_END;",
    ],
)
def test_query__that_shows_the_clock_only_when_it_is_rendered(query: str) -> None:
    plain = READS.format("'2024-01-01'")
    (found,) = seen(change({"models/m.sql": plain}, {"models/m.sql": query}), "current-time")
    assert found.severity == "high"
    assert "in WHERE)" in found.evidence


@pytest.mark.parametrize(
    "query",
    [
        HEAD + "@DEF(day, '2024-01-01');\n"
        "SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > @day",
        READS.format("@execution_ts"),
        READS.format("@IF(@runtime_stage = 'evaluating', '2024-01-02', '2024-01-01')"),
        READS.format("'@today of current_date()'"),
    ],
)
def test_query__whose_variables_are_no_clock(query: str) -> None:
    plain = READS.format("'2024-01-01'")
    assert seen(change({"models/m.sql": plain}, {"models/m.sql": query}), "current-time") == []
