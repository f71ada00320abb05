"""Audits that cannot run: columns that are not there, and arguments that nobody gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlmesh.core.audit import load_audit
from sqlmesh.core.audit.builtin import BUILT_IN_AUDITS
from sqlmesh.core.dialect import parse

from ci_bot.protocol.plan import Finding
from ci_bot.worker.rules.models.keys import MissingKeyColumn
from ci_bot.worker.rules.models.linter_rule import ProjectView
from ci_bot.worker.sql.audit_promises import read_audit_promises
from ci_bot.worker.sql.column_references import list_missing_columns
from tests.unit.rules.world import ROOT, change, models, seen

OWN = """
AUDIT (name no_debts); SELECT * FROM @this_model WHERE {column} < 0;

AUDIT (name in_orders);
SELECT t.customer_id FROM @this_model AS t
WHERE NOT EXISTS (SELECT 1 FROM raw.orders AS o WHERE o.{other} = t.customer_id);

AUDIT (name above, defaults (least = 0)); SELECT * FROM @this_model WHERE @column < @least;

AUDIT (name off, skip true); SELECT * FROM @this_model WHERE nothing = 1;
"""
KINDS = ("FULL", "INCREMENTAL_BY_TIME_RANGE (time_column d)", "VIEW")


def said(
    calls: str, *, kind: str = "FULL", column: str = "total", other: str = "customer_id"
) -> str:
    """What the rule says of a model with the columns customer_id, total and d."""
    text = (
        f"MODEL (name mart.m, kind {kind}, audits ({calls}));\n"
        "SELECT o.customer_id, o.amount AS total, CAST(o.order_ts AS DATE) AS d\n"
        "FROM raw.orders AS o"
    )
    made = models({"models/m.sql": text}, audits=OWN.format(column=column, other=other))
    rule = MissingKeyColumn(ProjectView(made))
    (model,) = (m for m in made.values() if m.name == "mart.m")
    return " ".join(observation.described_text for observation in rule.find_observations(model))


BROKEN = {
    "accepted_range(column := totale, min_v := 0)": "`accepted_range` reads `totale`",
    "forall(criteria := (totale > 0, total > 0))": "`forall` reads `totale`",
    "at_least_one(column := totale)": "`at_least_one` reads `totale`",
    "accepted_values(column := totale, is_in := (1, 2))": "`accepted_values` reads `totale`",
    "not_null(columns := (total), condition := totale > 0)": "`not_null` reads `totale`",
    "not_null(columns := (totale))": "`not_null` reads `totale`",
    "number_of_rows(threshold := 3, condition := x = 1)": "`number_of_rows` reads `x`",
    "not_null(columns := (total), condition := customer_id IN (SELECT id FROM raw.orders))": "`id`",
    "not_constant(columnn := total)": "`not_constant` is not given `column`",
    "not_null(column := total)": "`not_null` is not given `columns`",
    "above(columns := total)": "`above` is not given `column`",
    "above(column := totale)": "`above` reads `totale`",
    "unique_values(columns := (total)), not_empty_string(column := nam)": "`nam`",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("calls", "expected"), BROKEN.items())
def test_audit__that_cannot_run(calls: str, expected: str, kind: str) -> None:
    assert expected in said(calls, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_own_audit__that_cannot_run(kind: str) -> None:
    assert "`no_debts` reads `totale`" in said("no_debts", kind=kind, column="totale")
    told = said("in_orders", kind=kind, other="customer")
    assert "`in_orders` reads `customer`, which `spark_catalog.raw.orders` does not have" in told


@pytest.mark.parametrize(
    "calls",
    [
        "no_debts, in_orders, off, above(column := total), above(column := total, least := 5)",
        "accepted_range(column := TOTAL, min_v := 0, inclusive := false)",
        "forall(criteria := (total > 0, customer_id IS NOT NULL OR d < CURRENT_DATE()))",
        "not_null(columns := (customer_id, total), condition := d >= @execution_ds)",
        "not_null(columns := customer_id, blocking := false)",
        "accepted_values(column := total, is_in := ('a', 'b')), number_of_rows(threshold := 10)",
        "not_null(columns := (total), condition := customer_id IN (SELECT customer_id FROM x.y))",
        "mutually_exclusive_ranges(lower_bound_column := d, upper_bound_column := d)",
        "z_score(column := total, threshold := 3), stddev_in_range(column := total, max_v := 3)",
        "chi_square(column := customer_id, column_a := total, column_b := d, critical_value := 6)",
        "match_regex_pattern_list(column := d, patterns := ('^a', 'b$'))",
        "sequential_values(column := total, interval := 1), unique_values(columns := (total, d))",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_audit__that_runs(calls: str, kind: str) -> None:
    assert said(calls, kind=kind) == ""


def test_audits_of_sqlmesh__ask_for_arguments_that_have_names_of_arguments() -> None:
    """No word of their queries is taken for an argument that it is not."""
    told = " ".join(said(name) for name in BUILT_IN_AUDITS)

    for word in ("`c`", "`r`", "`E`", "this_model", "condition", "inclusive", "`dependent`"):
        assert word not in told


def test_promise__of_a_not_null_with_a_condition_is_none_for_all_rows() -> None:
    text = (
        "MODEL (name mart.m, kind FULL, audits (not_null(columns := (total), condition := total > 0),"
        " not_null(columns := (customer_id))));\n"
        "SELECT o.customer_id, o.amount AS total FROM raw.orders AS o"
    )
    (model,) = (m for m in models({"m.sql": text}).values() if m.name == "mart.m")

    assert set(read_audit_promises(model).not_null) == {"customer_id"}


COLUMNS = {"s.t": frozenset({"a", "b"}), "s.u": frozenset({"a", "c"})}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT x FROM s.t", {"x"}),
        ("SELECT * FROM (SELECT * FROM s.t) q WHERE x > 1", {"x"}),
        ("WITH w AS (SELECT a, 1 AS k FROM s.t) SELECT * FROM w WHERE k = 1 AND z = 1", {"z"}),
        ("SELECT t.x FROM s.t JOIN s.u ON t.a = u.a", {"x"}),
        ("SELECT c, q FROM s.t JOIN s.u ON t.a = u.a", {"q"}),
        ("SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM s.u WHERE u.c = n)", {"n"}),
        ("SELECT a FROM s.t UNION ALL SELECT zz FROM s.u", {"zz"}),
        ("WITH w(k) AS (SELECT a FROM s.t) SELECT k, a FROM w", {"a"}),
        ("SELECT a AS k FROM s.t ORDER BY k", set()),
        ("SELECT a, COUNT(*) AS n FROM s.t GROUP BY a HAVING n > 1", set()),
        ("SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM s.u WHERE u.c = b)", set()),
        ("SELECT a.f.g, b.h FROM s.t", set()),
        ("SELECT FILTER(a, x -> x > b), TRANSFORM(a, (x, i) -> x + i) FROM s.t", set()),
        ("SELECT e FROM s.t LATERAL VIEW EXPLODE(b) v AS e", set()),
        ("SELECT foo FROM s.x", set()),
        ("SELECT a FROM s.t WHERE NOT b IN (SELECT amount FROM other.ledger)", set()),
        ("SELECT a FROM s.t WHERE EXISTS (SELECT 1 FROM s.u WHERE c.f.g = 1)", set()),
        ("SELECT foo FROM s.t CROSS JOIN s.x", set()),
        ("SELECT current_date, _metadata.file_path FROM s.t", set()),
        ("SELECT q.* FROM (SELECT t.*, 1 AS rn FROM s.t) q WHERE rn = 1", set()),
        ("SELECT * FROM s.t PIVOT (SUM(a) FOR b IN ('x')) WHERE x = 1", set()),
        ("SELECT k FROM (SELECT a FROM s.t) AS q(k)", set()),
        ("SELECT a + 1 AS p, p + 1 AS q FROM s.t", set()),
        ("SELECT v.zz FROM VALUES (1) AS v(zz)", set()),
        ("SELECT t.a.f.g, t.b.h FROM s.t", set()),
        ("SELECT a FROM s.t LEFT SEMI JOIN s.u ON t.a = u.a AND u.c > 1", set()),
        ("SELECT a FROM s.t LEFT ANTI JOIN s.u ON t.a = u.x", {"x"}),
        ("SELECT e, t.x FROM s.t LATERAL VIEW EXPLODE(b) v AS e", {"x"}),
    ],
)
def test_missing_columns(sql: str, expected: set[str]) -> None:
    found = list_missing_columns(sqlglot.parse_one(sql, dialect="spark"), COLUMNS.get)

    assert {column for column, _ in found} == expected


def test_audit__with_the_interval_of_a_model_that_has_none() -> None:
    """SQLMesh gives a FULL model the time of execution and no interval."""
    call = "not_null(columns := (total), condition := d >= @start_ds)"

    assert "`not_null` is not given `start_ds`" in said(call)
    assert said(call, kind=KINDS[1]) == ""


@pytest.mark.parametrize(
    ("query", "subject", "line"),
    [
        ("SELECT *\nFROM @this_model AS t\nWHERE t.totale < 0", "audits own totale", 4),
        ("SELECT *\nFROM @this_model\nWHERE total < @low", "audits own argument low", 4),
        (
            "SELECT m.*\nFROM @this_model AS m\nJOIN raw.customers AS c ON c.id = m.order_id",
            "audits own raw.customers id",
            4,
        ),
    ],
)
def test_own_audit__is_found_in_its_file(query: str, subject: str, line: int) -> None:
    """A column also behind a table's name; and tables are called as the project calls them."""
    audit = f"AUDIT (name own);\n{query}"
    text = (
        "MODEL (name mart.m, kind FULL, grain order_id{});\n"
        "SELECT o.order_id, o.amount AS total FROM raw.orders AS o"
    )
    inputs = change(
        {"models/m.sql": text.format("")},
        {"models/m.sql": text.format(", audits (own)")},
        audits_after=audit,
        other_after={"audits/own.sql": audit},
    )

    (found,) = seen(inputs, "missing-key-column")

    assert (found.path, found.line, found.subject) == ("audits/own.sql", line, subject)


STANDALONE = "AUDIT (name {name}{more}, standalone true);\n{query}\n"
READ = "MODEL (name mart.m, kind FULL);\nSELECT o.customer_id{more} FROM raw.orders AS o"


def standalone(query: str, more: str = "", *, file: str = "audits/alone.sql") -> dict[str, Any]:
    expressions = parse(STANDALONE.format(name="alone", more=more, query=query), "spark")
    audit = load_audit(
        expressions,
        path=ROOT / file if file else Path(),
        dialect="spark",
        default_catalog="spark_catalog",
    )
    return {audit.name: audit}


def of_standalone_rule(
    rule: str,
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
    *,
    column_goes: bool = False,
    files: tuple[str, ...] = ("audits/alone.sql",),
) -> list[Finding]:
    old = {"models/m.sql": READ.format(more=", o.amount AS total")}
    new = {"models/m.sql": READ.format(more="")} if column_goes else old
    text = {audit._path.name: audit.query_.sql for audit in after.values()}
    written: dict[str, str | bytes] = {f"audits/{name}": text[name] for name in text if name}
    inputs = change(
        old, new, other_after=written, direct=frozenset(CHANGED) if column_goes else frozenset()
    )
    inputs = replace(
        inputs, standalone_after=after, standalone_before=before or {}, changed_files=files
    )
    return seen(inputs, rule)


def of_standalone(*audits: dict[str, Any], **more: Any) -> list[Finding]:
    return of_standalone_rule("missing-key-column", *audits, **more)


CHANGED = ('"spark_catalog"."mart"."m"',)
READS_TOTAL = "SELECT m.customer_id FROM mart.m AS m WHERE m.total < 0"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM mart.m AS m WHERE m.totale < 0", "`totale`, which `mart.m` does not have"),
        ("SELECT * FROM mart.m WHERE totale < 0", "`totale`"),
        (
            "SELECT * FROM mart.m AS m JOIN raw.orders AS o ON o.customer_id = m.customer_id "
            "WHERE totale < 0",
            "`totale`, which no model that it reads has",
        ),
        (
            "SELECT * FROM mart.m WHERE NOT EXISTS (SELECT 1 FROM raw.orders AS o WHERE o.x = 1)",
            "`x`, which `raw.orders` does not have",
        ),
    ],
)
def test_standalone_audit__that_cannot_run(query: str, expected: str) -> None:
    (found,) = of_standalone(standalone(query))
    assert found.severity == "blocker"
    assert expected in found.evidence.replace("spark_catalog.", "")
    assert "The standalone audit `alone`" in found.evidence
    assert (found.path, found.line is not None) == ("audits/alone.sql", True)


@pytest.mark.parametrize(
    ("query", "more"),
    [
        (READS_TOTAL, ""),
        ("SELECT * FROM mart.m AS m WHERE m.total > @least", ", defaults (least = 0)"),
        ("SELECT * FROM mart.m AS m WHERE m.nothing > 0", ", skip true"),
        ("SELECT * FROM elsewhere.t AS t WHERE t.nothing > 0", ""),
        ("SELECT n FROM (SELECT COUNT(*) AS n FROM mart.m) AS c WHERE n = 0", ""),
    ],
)
def test_standalone_audit__that_runs(query: str, more: str) -> None:
    assert of_standalone(standalone(query, more)) == []


def test_standalone_audit__whose_column_goes_away() -> None:
    audit = standalone(READS_TOTAL)
    (found,) = of_standalone(audit, audit, column_goes=True, files=("models/m.sql",))
    assert "reads `total`" in found.evidence


def test_standalone_audit__that_prod_has_like_this_is_no_fault_of_the_change() -> None:
    audit = standalone("SELECT * FROM mart.m AS m WHERE m.totale < 0")
    assert of_standalone(audit, audit) == []
    assert of_standalone(audit, files=("README.md",)) == []


def test_standalone_audit__of_the_state_has_no_file() -> None:
    audit = standalone(READS_TOTAL, file="")
    (found,) = of_standalone(audit, audit, column_goes=True, files=("models/m.sql",))
    assert (found.path, found.line) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("m.total < 0", "m.total < 0 AND m.customer_id > 7", "lets more pass than before"),
        ("m.total < 0", "m.total < -100", "lets more pass than before"),
        ("m.total < 0", "m.customer_id < 0", "checks something else now"),
        ("m.total < 0", "m.total < 100", None),
        ("m.total < 0", "m.total < 0 OR m.total IS NULL", None),
        ("m.total < 0", "M.TOTAL  <  0", None),
    ],
)
def test_standalone_audit__weakened(old: str, new: str, expected: str | None) -> None:
    query = "SELECT m.customer_id FROM mart.m AS m WHERE "
    before, after = standalone(query + old), standalone(query + new)
    found = of_standalone_rule("weakened-audit", after, before)
    assert [expected in item.evidence for item in found if expected] == [True] * bool(expected)
    assert bool(found) is (expected is not None)
    assert of_standalone_rule("weakened-audit", after, before, files=("README.md",)) == []


def test_standalone_audit__with_another_default() -> None:
    query = "SELECT * FROM mart.m AS m WHERE m.total > @most"
    before, after = (standalone(query, f", defaults (most = {most})") for most in (20, 2_000))
    assert len(of_standalone_rule("weakened-audit", after, before)) == 1
    assert of_standalone_rule("weakened-audit", before, after) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", ", cron '@yearly'", "runs by @yearly, and ran by @daily"),
        (", cron '@daily'", ", cron '0 5 * * 1'", "runs by 0 5 * * 1"),
        (", cron '@daily'", ", cron '@hourly'", None),
        (", cron '@daily'", ", cron '0 5 * * *'", None),
    ],
)
def test_standalone_audit__that_runs_less_often(old: str, new: str, says: str | None) -> None:
    query = "SELECT m.customer_id FROM mart.m AS m WHERE m.total < 0"
    before, after = standalone(query, old), standalone(query, new)
    found = of_standalone_rule("weakened-audit", after, before)
    assert [str(says) in item.evidence for item in found] == [True] * (says is not None)
