MODEL (
  name core.visit_lines,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column visited_on,
    lookback 7,
    batch_size 60
  ),
  partitioned_by (visited_on),
  grain (visit_id, line_no),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (visit_id, line_no)),
    NOT_NULL(columns := (visit_id, line_no, net_amount, vat_amount))
  )
);

SELECT
  v.visit_id,
  l.line_no,
  v.clinic_id,
  v.pet_id,
  v.vet_id,
  l.item_code,
  l.quantity,
  CAST(l.quantity * l.net_price * (1 - COALESCE(l.discount_pct, 0) / 100) AS DECIMAL(12, 2)) AS net_amount,
  CAST(
    l.quantity * l.net_price * (1 - COALESCE(l.discount_pct, 0) / 100) * t.rate AS DECIMAL(12, 2)
  ) AS vat_amount,
  v.visited_on
FROM stg.visits AS v
INNER JOIN pms.visit_lines AS l
  ON v.visit_id = l.visit_id
INNER JOIN stg.clinics AS c
  ON v.clinic_id = c.clinic_id
INNER JOIN ref.vat AS t
  ON c.country = t.country
  AND l.vat_code = t.vat_code
  AND v.visited_on BETWEEN t.valid_from AND t.valid_to
WHERE
  v.visited_on BETWEEN @start_ds AND @end_ds
