MODEL (
  name mart.clinic_months,
  kind FULL,
  grain (clinic_id, month_start),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (clinic_id, month_start)),
    NOT_NULL(columns := (clinic_id, month_start))
  )
);

SELECT
  l.clinic_id,
  TRUNC(l.visited_on, 'MM') AS month_start,
  COUNT(DISTINCT l.visit_id) AS visits,
  COUNT(DISTINCT l.pet_id) AS pets,
  SUM(l.net_amount) AS net_amount,
  SUM(l.net_amount) / COUNT(DISTINCT l.visit_id) AS net_per_visit,
  SUM(CASE WHEN i.item_group = 'drug' THEN l.net_amount ELSE 0 END) AS drug_amount
FROM core.visit_lines AS l
LEFT JOIN ref.items AS i
  ON l.item_code = i.item_code
GROUP BY
  l.clinic_id,
  TRUNC(l.visited_on, 'MM')
