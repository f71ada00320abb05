MODEL (
  name mart.slot_load,
  kind FULL,
  grain (visit_date, slot),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (visit_date, slot)),
    NOT_NULL(columns := (visit_date, slot))
  )
);

WITH booked AS (
  SELECT
    s.visit_date,
    s.slot,
    SUM(s.persons) AS persons
  FROM core.sales AS s
  WHERE
    NOT COALESCE(s.refunded, FALSE)
  GROUP BY
    s.visit_date,
    s.slot
)
SELECT
  b.visit_date,
  b.slot,
  b.persons,
  c.capacity,
  100.0 * b.persons / c.capacity AS load_pct
FROM booked AS b
LEFT JOIN ref.slots AS c
  ON c.slot = b.slot
