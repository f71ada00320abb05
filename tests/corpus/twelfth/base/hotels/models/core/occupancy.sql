MODEL (
  name core.occupancy,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column night,
    batch_size 31,
    lookback 30
  ),
  partitioned_by (night),
  grain (night, property_id),
  audits (
    NOT_NULL(columns := (night, property_id)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (night, property_id)),
    ACCEPTED_RANGE(column := occupancy, min_v := 0, max_v := 1.1)
  )
);

SELECT
  n.night,
  n.property_id,
  COUNT(*) AS rooms_sold,
  MAX(p.rooms) AS rooms,
  COUNT(*) / MAX(p.rooms) AS occupancy,
  SUM(n.nightly_price) AS room_revenue,
  SUM(n.nightly_price * (1 - c.commission)) AS net_revenue
FROM core.nights AS n
JOIN ref.properties AS p ON p.property_id = n.property_id
LEFT JOIN ref.channels AS c ON c.channel = n.channel
WHERE n.night BETWEEN @start_date AND @end_date
GROUP BY n.night, n.property_id
