MODEL (
  name mart.payments,
  kind INCREMENTAL_BY_TIME_RANGE (time_column picked_on, batch_size 31),
  partitioned_by picked_on,
  owner finance,
  grain (farm_id, picked_on),
  audits (not_null(columns := (farm_id)), amount_is_positive)
);

SELECT
  d.farm_id,
  d.picked_on,
  SUM(d.litres) AS litres,
  SUM(CAST(d.litres * r.price * @bonus(d.fat) AS DECIMAL(12, 2))) AS amount
FROM core.deliveries AS d
JOIN ref.prices AS r
  ON r.class = d.class AND d.picked_on BETWEEN r.valid_from AND r.valid_to
WHERE d.picked_on BETWEEN @start_ds AND @end_ds
GROUP BY d.farm_id, d.picked_on
