MODEL (
  name mart.controlled_drugs,
  kind FULL,
  description 'Use of controlled drugs, reported to the authority every quarter.',
  grain (clinic_id, item_code, quarter_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (clinic_id, item_code, quarter_start)),
    ACCEPTED_RANGE(column := used, min_v := 0)
  )
);

SELECT
  l.clinic_id,
  l.item_code,
  TRUNC(l.visited_on, 'QUARTER') AS quarter_start,
  SUM(l.quantity) AS used,
  COUNT(DISTINCT l.visit_id) AS visits
FROM core.visit_lines AS l
INNER JOIN ref.items AS i
  ON l.item_code = i.item_code
WHERE
  i.controlled
GROUP BY
  l.clinic_id,
  l.item_code,
  TRUNC(l.visited_on, 'QUARTER')
