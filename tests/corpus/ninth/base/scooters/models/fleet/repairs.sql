MODEL (
  name fleet.repairs,
  kind FULL,
  grain repair_id,
  column_descriptions (
    days_down = 'Whole days out of service, the day of return not counted',
    cost = 'EUR, net'
  ),
  audits (not_null(columns := (repair_id, cost)), unique_values(columns := (repair_id)))
);

SELECT
  r.repair_id,
  r.scooter_id,
  LOWER(r.part) AS part,
  r.opened_at,
  r.done_at,
  DATEDIFF(COALESCE(r.done_at, @execution_ts), r.opened_at) AS days_down,
  r.cost,
  SUM(r.cost) OVER (PARTITION BY r.scooter_id ORDER BY r.opened_at, r.repair_id) AS cost_so_far,
  NTILE(4) OVER (ORDER BY r.cost, r.repair_id) AS cost_quartile
FROM shop.repairs AS r
