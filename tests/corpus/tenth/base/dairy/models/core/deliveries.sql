MODEL (
  name core.deliveries,
  kind INCREMENTAL_BY_UNIQUE_KEY (unique_key pickup_id),
  table_format iceberg,
  owner collection,
  grain pickup_id,
  audits (not_null(columns := (pickup_id)))
);

SELECT p.pickup_id, p.farm_id, p.tanker_id, p.litres, p.picked_on, s.fat, s.protein, s.class
FROM stg.pickups AS p
LEFT JOIN stg.samples AS s
  ON s.pickup_id = p.pickup_id AND s.lab = 'central'
WHERE p.picked_on BETWEEN @start_ds AND @end_ds
