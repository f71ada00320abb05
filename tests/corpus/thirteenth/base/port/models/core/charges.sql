MODEL (
  name core.charges,
  kind FULL,
  owner finance_data,
  grain (call_id, service),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (call_id, service)),
    NOT_NULL(columns := (call_id, service))
  )
);

WITH moved AS (
  SELECT
    m.call_id,
    m.move_type AS service,
    COUNT(*) AS moves
  FROM stg.moves AS m
  GROUP BY
    m.call_id,
    m.move_type
)
SELECT
  c.call_id,
  n.service,
  c.line_code,
  n.moves,
  t.rate,
  t.currency,
  CAST(n.moves * t.rate AS DECIMAL(14, 2)) AS charge
FROM moved AS n
JOIN stg.calls AS c
  ON c.call_id = n.call_id
LEFT JOIN fin.tariffs AS t
  ON t.line_code = c.line_code
  AND t.service = n.service
  AND CAST(c.arrived_at AS DATE) >= t.valid_from
  AND CAST(c.arrived_at AS DATE) < COALESCE(t.valid_to, DATE '9999-12-31')
