"""What SQLMesh's own macros render is no slip of the person who calls them.

The cases are from SQLMesh's documentation of its macros (concepts/macros/sqlmesh_macros).
"""

from __future__ import annotations

import pytest

from tests.unit.rules.world import list_severities_of_new_model

STAYS = {
    "models/units.sql": (
        "MODEL (name stg.units, kind FULL, grain unit_id); SELECT u.unit_id, u.price, u.score, "
        "u.state, u.made_on, u.lat, u.lon, u.hours FROM erp.units AS u"
    ),
    "models/sold.sql": (
        "MODEL (name stg.sold, kind FULL, grain unit_id); SELECT u.unit_id, u.price, u.score, "
        "u.state, u.made_on, u.lat, u.lon, u.hours FROM erp.sold AS u"
    ),
}
COLUMNS = {
    "unit_id": "BIGINT", "price": "DECIMAL(9,2)", "score": "INT", "state": "STRING",
    "made_on": "DATE", "lat": "DOUBLE", "lon": "DOUBLE", "hours": "DOUBLE",
}  # fmt: skip
TABLES = {"erp.units": COLUMNS, "erp.sold": COLUMNS}
RULES = (
    "improbable-expression", "misnamed-column", "many-to-many-join", "mixed-currencies",
    "query-refused", "fan-out-total", "history-join", "nondeterministic-order",
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT @GENERATE_SURROGATE_KEY(u.unit_id, u.state) AS unit_key, u.unit_id FROM stg.units AS u",
        "SELECT u.unit_id, @SAFE_ADD(u.price, 0) AS price FROM stg.units AS u",
        "SELECT u.unit_id, @SAFE_ADD(u.price, u.score, NULL) AS price FROM stg.units AS u",
        "SELECT u.unit_id, @SAFE_SUB(u.price, u.score) AS price FROM stg.units AS u",
        "SELECT u.unit_id, @SAFE_DIV(u.price, u.score) AS price FROM stg.units AS u",
        "SELECT @STAR(stg.units, u) FROM stg.units AS u",
        "@UNION('distinct', stg.units, stg.sold)",
        "@UNION('all', stg.units, stg.sold)",
        "SELECT u.unit_id, @HAVERSINE_DISTANCE(u.lat, u.lon, 52.5, 13.4, 'km') AS way_km FROM stg.units AS u",
        "SELECT u.made_on, @PIVOT(u.state, ['open', 'sold']) FROM stg.units AS u GROUP BY u.made_on",
        "SELECT u.unit_id FROM stg.units AS u WHERE @AND(u.price > 1, NULL, u.score > 2)",
        "SELECT u.unit_id FROM stg.units AS u WHERE @OR(u.price > 1, NULL, u.score > 2)",
        "WITH raw AS (@DEDUPLICATE(stg.units, [unit_id], ['made_on desc', 'price desc', 'score desc'])) "
        "SELECT r.unit_id, r.made_on FROM raw AS r",
        "WITH days AS (@DATE_SPINE('day', '2024-01-01', '2024-12-31')) SELECT d.date_day FROM days AS d",
        "SELECT u.unit_id, @IF(TRUE, u.price, u.score) AS price FROM stg.units AS u",
        "SELECT u.unit_id, @EACH(['open', 'sold'], x -> u.state = x AS is_@x) FROM stg.units AS u",
        "SELECT u.made_on, @EACH([1, 2], x -> SUM(CASE WHEN u.score = @x THEN 1 ELSE 0 END) AS n_@x) "
        "FROM stg.units AS u GROUP BY u.made_on",
    ],
)
def test_macro_of_sqlmesh__renders_no_slip(rule: str, query: str) -> None:
    assert list_severities_of_new_model(rule, query, stays=STAYS, external=TABLES) == []
