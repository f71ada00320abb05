"""A finding is what it is about. What was there before stays known in other words; one more of the
same kind is new."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ci_bot.protocol.rules import find_rule
from ci_bot.worker.messages.names import MessageNames
from ci_bot.worker.rules.model_rules import MODEL_RULES
from ci_bot.worker.rules.observation import RuleObservation, list_new_observations, make_finding
from tests.unit.rules.shop import FILES
from tests.unit.rules.world import change, files, seen

NAMES = MessageNames("spark_catalog", "spark")
FULL = "MODEL (name mart.m, kind FULL, grain order_id);\n"
DAILY = (
    "MODEL (name mart.m, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 9), "
    "grain order_id);\n"
)
KEYED = "MODEL (name mart.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key country));\n"
HISTORY = (
    "MODEL (name dim.customers, kind SCD_TYPE_2_BY_TIME (unique_key customer_id), "
    "grain (customer_id, valid_from));\n"
    "SELECT c.customer_id, c.country, c.updated_at FROM raw.customers AS c"
)
VALID = "MODEL (name mart.m, kind SCD_TYPE_2_BY_TIME (unique_key customer_id));\n"
DAY = "CAST(o.order_ts AS DATE) AS day"
WITHIN = "CAST(o.order_ts AS DATE) BETWEEN @start_ds AND @end_ds"
CLOSING = (
    "MODEL (name mart.m, kind SCD_TYPE_2_BY_TIME (unique_key customer_id, updated_at_name "
    "updated_at, invalidate_hard_deletes true));\n"
)
MERGED = "MODEL (name mart.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (order_id, country)));\n"
DEFAULTED = (
    "MODEL (name mart.m, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key (COALESCE(customer_id, 0))));\n"
)
MATCHED = "raw.orders AS o LEFT JOIN raw.customers AS c ON c.customer_id = o.customer_id"
RECURSION = (
    "{0} AS (SELECT o.order_id AS n, 0 AS m FROM raw.orders AS o "
    "UNION ALL SELECT r.n + 1, r.m FROM {0} AS r)"
)


@dataclass(frozen=True)
class Case:
    """A model with a finding; the same finding in other words; and one more of its kind."""

    rule: str
    before: str
    same: str
    more: str
    new: str | None


CASES = {
    "chance": Case(
        "random",
        f"{FULL}SELECT o.order_id, UUID() AS k FROM raw.orders AS o",
        f"{FULL}SELECT uuid() AS k, x.order_id FROM raw.orders AS x WHERE x.amount > 0",
        f"{FULL}SELECT o.order_id, UUID() AS k, UUID() AS k2 FROM raw.orders AS o",
        "UUID in column k2",
    ),
    "a sample": Case(
        "random",
        f"{FULL}SELECT o.order_id FROM raw.orders TABLESAMPLE (10 PERCENT) AS o",
        f"{FULL}SELECT o.order_id FROM raw.orders TABLESAMPLE (20 PERCENT) AS o",
        f"{FULL}SELECT o.order_id, RAND() AS k FROM raw.orders TABLESAMPLE (10 PERCENT) AS o",
        "RAND in column k",
    ),
    "the clock": Case(
        "current-time",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > CURRENT_TIMESTAMP()",
        f"{FULL}SELECT x.order_id FROM raw.orders AS x WHERE CURRENT_TIMESTAMP() < x.order_ts",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o "
        "WHERE o.order_ts > CURRENT_TIMESTAMP() AND o.loaded_at > CURRENT_TIMESTAMP()",
        "CURRENT_TIMESTAMP in WHERE",
    ),
    "the clock, somewhere else": Case(
        "current-time",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o WHERE o.order_ts > CURRENT_TIMESTAMP()",
        f"{FULL}WITH a AS (SELECT o.order_id, o.order_ts FROM raw.orders AS o) "
        "SELECT a.order_id FROM a WHERE a.order_ts > CURRENT_TIMESTAMP()",
        f"{FULL}SELECT o.order_id, CURRENT_TIMESTAMP() AS built FROM raw.orders AS o",
        "CURRENT_TIMESTAMP in column built",
    ),
    "an amount of money": Case(
        "imprecise-money",
        f"{FULL}SELECT o.order_id, CAST(o.amount AS DOUBLE) AS amount FROM raw.orders AS o",
        f"{FULL}SELECT DOUBLE(x.amount) AS amount FROM raw.orders AS x WHERE x.amount > 0",
        f"{FULL}SELECT o.order_id, CAST(o.amount AS DOUBLE) AS amount, "
        "CAST(o.amount AS FLOAT) AS fee FROM raw.orders AS o",
        "fee",
    ),
    "a join of pairs": Case(
        "many-to-many-join",
        f"{FULL}SELECT o.order_id, c.customer_id FROM stg.orders AS o "
        "JOIN stg.customers AS c ON o.status = c.country",
        f"{FULL}SELECT p.order_id, k.country FROM stg.orders AS p "
        "JOIN stg.customers AS k ON p.status = k.country",
        f"{FULL}SELECT o.order_id, c.customer_id FROM stg.orders AS o "
        "JOIN stg.customers AS c ON o.status = c.country "
        "UNION ALL SELECT a.order_id, b.order_id FROM stg.orders AS a "
        "JOIN stg.orders AS b ON a.status = b.status",
        "stg.orders, stg.orders",
    ),
    "a last one that is the first": Case(
        "misnamed-column",
        f"{FULL}SELECT o.status, MIN(o.amount) AS last_amount FROM raw.orders AS o "
        "GROUP BY o.status",
        f"{FULL}SELECT x.status, MIN(x.amount) AS last_amount FROM raw.orders AS x "
        "WHERE x.amount > 0 GROUP BY x.status",
        f"{FULL}SELECT o.status, MIN(o.amount) AS last_amount, MAX(o.amount) AS first_amount "
        "FROM raw.orders AS o GROUP BY o.status",
        "first_amount",
    ),
    "a column that is in no group": Case(
        "query-refused",
        f"{FULL}SELECT o.status, o.amount, COUNT(*) AS n FROM raw.orders AS o GROUP BY o.status",
        f"{FULL}SELECT o.amount, o.status, MAX(o.order_id) AS n FROM raw.orders AS o "
        "WHERE o.amount > 0 GROUP BY o.status",
        f"{FULL}SELECT o.status, o.amount, o.order_id, COUNT(*) AS n FROM raw.orders AS o "
        "GROUP BY o.status",
        "o.order_id",
    ),
    "a sum of currencies": Case(
        "mixed-currencies",
        f"{FULL}WITH a AS (SELECT o.amount, o.status AS currency FROM raw.orders AS o) "
        "SELECT SUM(a.amount) AS total FROM a",
        f"{FULL}WITH b AS (SELECT o.amount, o.status AS currency FROM raw.orders AS o) "
        "SELECT SUM(b.amount + 1) AS total FROM b",
        f"{FULL}WITH a AS (SELECT o.amount, o.status AS currency FROM raw.orders AS o) "
        "SELECT SUM(a.amount) AS total, AVG(a.amount) AS mean FROM a",
        "mean of amount",
    ),
    "a limit": Case(
        "limit-in-model",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o LIMIT 10",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o LIMIT 20",
        f"{FULL}WITH a AS (SELECT o.order_id FROM raw.orders AS o LIMIT 5) "
        "SELECT a.order_id FROM a LIMIT 10",
        "LIMIT of a subquery",
    ),
    "a limit that no longer ranks": Case(
        "limit-in-model",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o ORDER BY o.order_id LIMIT 10",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o ORDER BY o.amount LIMIT 20",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o LIMIT 10",
        "LIMIT",
    ),
    "a cross join": Case(
        "cross-join",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o CROSS JOIN raw.customers AS c",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o, raw.customers AS k",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o CROSS JOIN raw.customers AS c "
        "CROSS JOIN raw.customers AS d",
        "raw.customers",
    ),
    "a broadcast": Case(
        "broadcast-hint",
        f"{FULL}SELECT /*+ BROADCAST(c) */ o.order_id FROM raw.orders AS o "
        "JOIN raw.customers AS c ON c.customer_id = o.customer_id",
        f"{FULL}SELECT /*+ MAPJOIN(k) */ p.order_id FROM raw.orders AS p "
        "JOIN raw.customers AS k ON k.customer_id = p.customer_id",
        f"{FULL}SELECT /*+ BROADCAST(c, d) */ o.order_id FROM raw.orders AS o "
        "JOIN raw.customers AS c ON c.customer_id = o.customer_id "
        "JOIN raw.orders AS d ON d.order_id = o.order_id",
        "raw.orders",
    ),
    "a timestamp that ends with a day": Case(
        "interval-edge-lost",
        f"{DAILY}SELECT o.order_id, o.order_ts FROM raw.orders AS o "
        "WHERE o.order_ts BETWEEN @start_ds AND @end_ds",
        f"{DAILY}SELECT x.order_id, x.order_ts FROM raw.orders AS x "
        "WHERE x.order_ts >= @start_ds AND x.order_ts <= @end_ds",
        f"{DAILY}SELECT o.order_id, o.order_ts FROM raw.orders AS o "
        "JOIN raw.orders AS p ON p.order_id = o.order_id AND p.order_ts <= @end_ds "
        "WHERE o.order_ts BETWEEN @start_ds AND @end_ds",
        "timestamps to @end_ds",
    ),
    "a star": Case(
        "select-star",
        f"{FULL}SELECT * FROM raw.orders AS o",
        f"{FULL}SELECT x.* FROM raw.orders AS x WHERE x.amount > 0",
        f"{FULL}SELECT o.*, c.* FROM raw.orders AS o "
        "JOIN raw.customers AS c ON c.customer_id = o.customer_id",
        "* of raw.customers",
    ),
    "a source that nobody registered": Case(
        "external-unregistered",
        f"{FULL}SELECT o.order_id FROM raw.crew AS o",
        f"{FULL}SELECT DISTINCT x.order_id FROM raw.crew AS x",
        f"{FULL}SELECT o.order_id FROM raw.crew AS o JOIN raw.ships AS s ON s.id = o.order_id",
        "raw.ships",
    ),
    "an unknown type": Case(
        "uncast-projection",
        f"{FULL}SELECT o.order_id, OURS(o.status) AS a FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, OURS(o.amount) AS a FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, OURS(o.status) AS a, OURS(o.amount) AS b FROM raw.orders AS o",
        "b",
    ),
    "a sum over a join": Case(
        "fan-out-total",
        f"{FULL}SELECT c.country, SUM(c.customer_id) AS a FROM stg.customers AS c "
        "JOIN stg.orders AS o ON o.customer_id = c.customer_id GROUP BY c.country",
        f"{FULL}SELECT k.country, SUM(k.customer_id + 1) AS a FROM stg.customers AS k "
        "JOIN stg.orders AS p ON p.customer_id = k.customer_id GROUP BY k.country",
        f"{FULL}SELECT c.country, SUM(c.customer_id) AS a, AVG(c.customer_id) AS b "
        "FROM stg.customers AS c JOIN stg.orders AS o ON o.customer_id = c.customer_id "
        "GROUP BY c.country",
        "b by stg.orders",
    ),
    "a joined history": Case(
        "history-join",
        f"{FULL}SELECT o.order_id FROM stg.orders AS o "
        "JOIN dim.customers AS c ON c.customer_id = o.customer_id",
        f"{FULL}SELECT o.order_id FROM stg.orders AS o "
        "LEFT JOIN dim.customers AS k ON k.customer_id = o.customer_id AND k.country = 'de'",
        f"{FULL}SELECT o.order_id FROM stg.orders AS o "
        "JOIN dim.customers AS c ON c.customer_id = o.customer_id "
        "JOIN dim.customers AS d ON d.customer_id = o.order_id",
        "dim.customers",
    ),
    "a list that may hold NULL": Case(
        "not-in-nullable",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o "
        "WHERE o.status NOT IN (SELECT c.country FROM raw.customers AS c)",
        f"{FULL}SELECT x.order_id FROM raw.orders AS x "
        "WHERE NOT x.status IN (SELECT k.country FROM raw.customers AS k WHERE k.country <> 'x')",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o "
        "WHERE o.status NOT IN (SELECT c.country FROM raw.customers AS c) "
        "AND o.status NOT IN (SELECT c.email FROM raw.customers AS c)",
        "raw.customers email",
    ),
    "a recursion": Case(
        "unbounded-recursion",
        f"{FULL}WITH RECURSIVE {RECURSION.format('a')} SELECT a.n AS order_id FROM a",
        f"{FULL}WITH RECURSIVE {RECURSION.format('b')} SELECT b.n AS order_id FROM b",
        f"{FULL}WITH RECURSIVE {RECURSION.format('a')}, {RECURSION.format('b')} "
        "SELECT a.n AS order_id FROM a JOIN b ON b.n = a.n",
        "raw.orders",
    ),
    "a union in another order": Case(
        "union-column-order",
        f"{FULL}SELECT o.order_id, o.status, o.amount FROM raw.orders AS o UNION ALL "
        "SELECT o.order_id, o.amount, o.status FROM raw.orders AS o",
        f"{FULL}SELECT x.order_id, x.status, x.amount FROM raw.orders AS x UNION ALL "
        "SELECT x.order_id, x.amount, x.status FROM raw.orders AS x WHERE x.amount > 0",
        f"{FULL}SELECT o.order_id, o.status, o.amount FROM raw.orders AS o UNION ALL "
        "SELECT o.status, o.order_id, o.amount FROM raw.orders AS o",
        "order_id, status",
    ),
    "a missing column": Case(
        "missing-column",
        f"{FULL}SELECT o.order_id, o.nope AS a FROM raw.orders AS o",
        f"{FULL}SELECT x.order_id, x.nope + 1 AS a FROM raw.orders AS x",
        f"{FULL}SELECT o.order_id, o.nope AS a, o.never AS b FROM raw.orders AS o",
        "raw.orders never",
    ),
    "a comparison with NULL": Case(
        "improbable-expression",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o WHERE o.status = NULL",
        f"{FULL}SELECT x.order_id FROM raw.orders AS x WHERE x.status = NULL AND x.amount > 0",
        f"{FULL}SELECT o.order_id FROM raw.orders AS o WHERE o.amount = NULL",
        "amount = NULL in WHERE",
    ),
    "a key without an audit": Case(
        "unique-key-no-audit",
        f"{KEYED}SELECT c.country, c.email FROM raw.customers AS c WHERE c.updated_at > @start_ts",
        f"{KEYED}SELECT c.email, c.country FROM raw.customers AS c WHERE c.updated_at > @start_ts",
        f"{KEYED.replace('country', 'email')}SELECT c.country, c.email FROM raw.customers AS c "
        "WHERE c.updated_at > @start_ts",
        "(email)",
    ),
    "a grain that nobody watches": Case(
        "missing-key-audit",
        f"{FULL}SELECT o.order_id, o.status FROM raw.orders AS o",
        f"{FULL}SELECT o.status, o.order_id FROM raw.orders AS o",
        f"{FULL.replace('order_id', 'status')}SELECT o.order_id, o.status FROM raw.orders AS o",
        "(status)",
    ),
    "a column of an audit": Case(
        "missing-key-column",
        f"{FULL[:-3]}, audits (not_null(columns := (a))));\nSELECT o.order_id FROM raw.orders AS o",
        f"{FULL[:-3]}, audits (not_null(columns := (order_id, a))));\n"
        "SELECT o.order_id FROM raw.orders AS o",
        f"{FULL[:-3]}, audits (not_null(columns := (a, b))));\n"
        "SELECT o.order_id FROM raw.orders AS o",
        "audits not_null b",
    ),
    "no filter on the interval": Case(
        "time-filter-missing",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o WHERE {WITHIN} OR o.amount > 0",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o WHERE {WITHIN}",
        None,
    ),
    "half a filter on the interval": Case(
        "time-filter-missing",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE CAST(o.order_ts AS DATE) >= @start_ds",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE o.amount > 0 AND CAST(o.order_ts AS DATE) >= @start_ds",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o",
        "start; end",
    ),
    "an edge of the interval": Case(
        "interval-edge-lost",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE CAST(o.order_ts AS DATE) >= @start_ds AND CAST(o.order_ts AS DATE) < @end_ds",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE @end_ds > CAST(o.order_ts AS DATE) AND CAST(o.order_ts AS DATE) >= @start_ds",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE CAST(o.order_ts AS DATE) > @start_ds AND CAST(o.order_ts AS DATE) < @end_ds",
        "@start_ds",
    ),
    "a window over the interval": Case(
        "window-over-interval",
        f"{DAILY}SELECT o.order_id, {DAY}, SUM(o.amount) OVER (PARTITION BY o.status) AS a "
        f"FROM raw.orders AS o WHERE {WITHIN}",
        f"{DAILY}SELECT o.order_id, {DAY}, SUM(o.amount + 1) OVER (PARTITION BY o.status) AS a "
        f"FROM raw.orders AS o WHERE {WITHIN}",
        f"{DAILY}SELECT o.order_id, {DAY}, SUM(o.amount) OVER (PARTITION BY o.status) AS a, "
        f"SUM(o.amount) OVER (PARTITION BY o.status) AS b FROM raw.orders AS o WHERE {WITHIN}",
        "SUM in column b",
    ),
    "a total of one interval": Case(
        "aggregate-over-interval",
        f"{KEYED}SELECT c.country, COUNT(*) AS a FROM raw.customers AS c "
        "WHERE c.updated_at BETWEEN @start_ts AND @end_ts GROUP BY c.country",
        f"{KEYED}SELECT k.country, COUNT(k.email) AS a FROM raw.customers AS k "
        "WHERE k.updated_at BETWEEN @start_ts AND @end_ts GROUP BY k.country",
        f"{KEYED}SELECT c.country, COUNT(*) AS a, COUNT(*) AS b FROM raw.customers AS c "
        "WHERE c.updated_at BETWEEN @start_ts AND @end_ts GROUP BY c.country",
        "b",
    ),
    "a validity column": Case(
        "scd-validity",
        f"{VALID}SELECT c.customer_id, c.updated_at, c.updated_at AS valid_from "
        "FROM raw.customers AS c",
        f"{VALID}SELECT c.customer_id, c.updated_at, NULL AS valid_from FROM raw.customers AS c",
        f"{VALID}SELECT c.customer_id, c.updated_at, c.updated_at AS valid_from, "
        "c.updated_at AS valid_to FROM raw.customers AS c",
        "valid_to",
    ),
    "a variable": Case(
        "undefined-variable",
        f"{FULL}SELECT o.order_id, @VAR('one') AS a FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, @VAR('one') + @VAR('one') AS a FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, @VAR('one') + @VAR('two') AS a FROM raw.orders AS o",
        "two",
    ),
    "a key that is slow to compare": Case(
        "high-cardinality-key",
        f"{KEYED.replace('country', 'UPPER(country)')}SELECT c.country FROM raw.customers AS c "
        "WHERE c.updated_at > @start_ts",
        f"{KEYED.replace('country', 'UPPER(country)')}SELECT k.country FROM raw.customers AS k "
        "WHERE k.updated_at > @start_ts",
        f"{KEYED.replace('country', 'UPPER(email)')}SELECT c.email FROM raw.customers AS c "
        "WHERE c.updated_at > @start_ts",
        "(email)",
    ),
    "a filter on another time": Case(
        "time-filter-wrong-column",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE o.loaded_at BETWEEN @start_ts AND @end_ts",
        f"{DAILY}SELECT x.order_id, CAST(x.order_ts AS DATE) AS day FROM raw.orders AS x "
        "WHERE x.amount > 0 AND x.loaded_at BETWEEN @start_ts AND @end_ts",
        f"{DAILY}SELECT o.order_id, {DAY} FROM raw.orders AS o "
        "WHERE o.loaded_at BETWEEN @start_ts AND @end_ts",
        None,
    ),
    "a time that is cut": Case(
        "time-column-outside-interval",
        f"{DAILY}SELECT o.order_id, DATE_TRUNC('MONTH', o.order_ts) AS day FROM raw.orders AS o "
        f"WHERE {WITHIN}",
        f"{DAILY}SELECT o.order_id, CAST(TRUNC(o.order_ts, 'MM') AS DATE) AS day "
        f"FROM raw.orders AS o WHERE {WITHIN}",
        f"{DAILY}SELECT o.order_id, DATE_TRUNC('YEAR', o.order_ts) AS day FROM raw.orders AS o "
        f"WHERE {WITHIN}",
        "day cut to the year",
    ),
    "a partition for each row": Case(
        "partition-per-row",
        "MODEL (name mart.m, kind FULL, grain order_id, partitioned_by (order_id));\n"
        "SELECT o.order_id FROM raw.orders AS o",
        "MODEL (name mart.m, kind FULL, grain order_id, partitioned_by (order_id));\n"
        "SELECT x.order_id FROM raw.orders AS x WHERE x.amount > 0",
        "MODEL (name mart.m, kind FULL, grain order_id, partitioned_by (order_id, order_ts));\n"
        "SELECT o.order_id, o.order_ts FROM raw.orders AS o",
        "order_ts",
    ),
    "a history of a window": Case(
        "hard-deletes-partial-source",
        f"{CLOSING}SELECT c.customer_id, c.updated_at FROM raw.customers AS c "
        "WHERE c.updated_at > CURRENT_TIMESTAMP() - INTERVAL '7' DAY",
        f"{CLOSING}SELECT k.customer_id, k.updated_at FROM raw.customers AS k "
        "WHERE k.updated_at BETWEEN @start_ts AND @end_ts",
        f"{CLOSING}SELECT c.customer_id, c.updated_at FROM raw.customers AS c "
        "WHERE c.updated_at > CURRENT_TIMESTAMP() - INTERVAL '7' DAY LIMIT 9",
        "limit",
    ),
    "a NULL in a key": Case(
        "merge-key-null",
        f"{MERGED}SELECT o.order_id, c.country FROM {MATCHED}",
        f"{MERGED}SELECT o.order_id, UPPER(c.country) AS country FROM {MATCHED}",
        f"{MERGED}SELECT NULLIF(o.order_id, 0) AS order_id, c.country FROM {MATCHED}",
        "order_id",
    ),
    "one key for all rows without one": Case(
        "merge-key-null",
        f"{DEFAULTED}SELECT o.customer_id FROM raw.orders AS o",
        f"{DEFAULTED}SELECT x.customer_id FROM raw.orders AS x",
        f"{DEFAULTED.replace('0)', '0), COALESCE(amount, 0)')}"
        "SELECT o.customer_id, o.amount FROM raw.orders AS o",
        "constant (amount, customer_id)",
    ),
    "a list without an order": Case(
        "unordered-aggregate",
        f"{FULL}SELECT o.order_id, COLLECT_LIST(o.status) AS l FROM raw.orders AS o GROUP BY 1",
        f"{FULL}SELECT x.order_id, COLLECT_LIST(x.amount) AS l FROM raw.orders AS x GROUP BY 1",
        f"{FULL}SELECT o.order_id, COLLECT_LIST(o.status) AS l, FIRST(o.status) AS s "
        "FROM raw.orders AS o GROUP BY 1",
        "FIRST in column s",
    ),
    "a subquery of many rows": Case(
        "scalar-subquery-rows",
        f"{FULL}SELECT o.order_id, (SELECT c.country FROM raw.customers AS c) AS c "
        "FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, (SELECT k.email FROM raw.customers AS k) AS c "
        "FROM raw.orders AS o",
        f"{FULL}SELECT o.order_id, (SELECT c.country FROM raw.customers AS c) AS c, "
        "(SELECT c.country FROM raw.customers AS c) AS d FROM raw.orders AS o",
        "subquery in column d",
    ),
}
# They are about the model as a whole, so there is nothing to count.
WHOLE = {
    "external-without-audits",
    "huge-full-model",
    "merge-unsupported",
    "missing-grain",
    "no-start",
    "partitions-without-time",
}
# Code in Python is made by test_dependencies.py and test_environment_variables.py.
PYTHON = {"environment-variable", "python-dependency-missing"}


def subjects(before: str, after: str, rule_id: str) -> list[str | None]:
    around = {**FILES, "models/dim.sql": HISTORY}
    inputs = change({**around, "models/m.sql": before}, {**around, "models/m.sql": after})
    return [item.subject for item in seen(inputs, rule_id)]


def test_cases__are_there_for_every_rule_on_models() -> None:
    known = {case.rule for case in CASES.values()} | WHOLE | PYTHON
    assert known == {spec.id for spec in MODEL_RULES.registered_specs}


@pytest.mark.by_day(12)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_finding__that_was_there_in_other_words_is_not_new(case: Case) -> None:
    quiet = "MODEL (name mart.m, kind VIEW, grain order_id);\nSELECT 1 AS order_id"
    assert subjects(quiet, case.same, case.rule), "the changed model has the finding"
    assert subjects(case.before, case.same, case.rule) == []


@pytest.mark.by_day(12)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_finding__of_one_more_thing_is_new_and_about_that_alone(case: Case) -> None:
    wanted = [case.new] if case.new is not None else []
    assert subjects(case.before, case.more, case.rule) == wanted


# ---------------------------------------------------------------------------------- the comparison


def saw(*subject: str, severity: str | None = None, told: str = "seen") -> RuleObservation:
    return RuleObservation(find_rule("random"), told, "gone", severity=severity, subject=subject)


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([], [saw("a")], [("a",)]),
        ([saw("a", told="x")], [saw("a", told="y")], []),
        ([saw("a")], [saw("a", "a")], [("a",)]),
        ([saw("a"), saw("b")], [saw("b", "a", "c")], [("c",)]),
        ([saw("a", severity="low")], [saw("a")], [("a",)]),
        ([saw("a")], [saw("a", severity="low")], []),
        ([saw("a", severity="low"), saw("a")], [saw("a", severity="low"), saw("a")], []),
        ([saw("a"), saw("a", severity="low")], [saw("a"), saw("a")], [("a",)]),
        ([saw()], [saw(told="in other words")], []),
        ([], [saw()], [()]),
    ],
)
def test_new_since(
    before: list[RuleObservation], after: list[RuleObservation], new: list[tuple[str, ...]]
) -> None:
    assert [one.subject for one in list_new_observations(before, after)] == new


def test_sentence__is_told_of_what_is_new() -> None:
    tell = RuleObservation(
        find_rule("random"), lambda calls: f"It has {calls}.", "gone", subject=("a", "b")
    )
    (told,) = (
        make_finding(one, NAMES, None, None) for one in list_new_observations([saw("a")], [tell])
    )
    assert (told.evidence, told.subject) == ("It has ('b',).", "b")


# ------------------------------------------------------------------------------------------- files


def in_file(path: str, before: str, after: str, rule_id: str) -> list[str | None]:
    return [item.subject for item in seen(files({path: before}, {path: after}), rule_id)]


@pytest.mark.parametrize(
    ("rule_id", "call"),
    [
        ("macro-side-effect", "requests.post('https://x.example')"),
        ("current-time", "datetime.datetime.now()"),
        ("random", "random.random()"),
    ],
)
def test_macro__with_a_second_call_of_the_same_is_new(rule_id: str, call: str) -> None:
    one = f"import requests, datetime, random\ndef first(e):\n    return {call}\n"
    two = f"{one}def second(e):\n    return {call}\n"

    assert in_file("macros/m.py", one, f"# why\n{one}", rule_id) == []
    assert len(in_file("macros/m.py", one, two, rule_id)) == 1


def test_python_model__with_a_second_call_of_the_same_is_new() -> None:
    from ci_bot.worker.sql.model_code import find_clock_calls_in, parse_python

    tree = parse_python("import time\na = time.time()\nb = time.time()\n")
    assert tree is not None
    assert find_clock_calls_in([tree]) == ["time.time", "time.time"]


def test_argument__of_a_macro_that_comes_again_is_new() -> None:
    text = "MODEL (name a.b, kind FULL);\nSELECT @M(__import__('os').system('x')) AS a"
    again = f"{text},\n  @M(__import__('os').system('x')) AS b"

    assert in_file("models/m.sql", text, f"{text} FROM c.d", "macro-runs-python") == []
    assert len(in_file("models/m.sql", text, again, "macro-runs-python")) == 1
