MODEL (
  name stg.pickups,
  kind INCREMENTAL_BY_TIME_RANGE (time_column picked_on, lookback 2, batch_size 31),
  partitioned_by picked_on,
  owner collection,
  grain pickup_id,
  signals (lab_has_delivered(lab := 'central')),
  audits (
    not_null(columns := (pickup_id, farm_id)),
    unique_values(columns := (pickup_id)),
    litres_are_plausible
  )
);

SELECT
  p.pickup_id,
  p.farm_id,
  p.tanker_id,
  p.litres,
  p.temperature,
  p.picked_at,
  CAST(p.picked_at AS DATE) AS picked_on
FROM raw.pickups AS p
WHERE p.litres > 0
  AND p.litres < @litre_limit
  AND CAST(p.picked_at AS DATE) BETWEEN @start_ds AND @end_ds
