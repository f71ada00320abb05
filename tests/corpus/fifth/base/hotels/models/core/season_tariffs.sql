MODEL (
  name core.season_tariffs,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by season,
  grain (hotel_id, room, season),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (hotel_id, room, season))
  )
);

SELECT
  CAST(b.hotel_id AS STRING) AS hotel_id,
  CAST(b.status AS STRING) AS room,
  CAST(YEAR(b.checkin) AS STRING) AS season,
  MAX(b.price) AS price
FROM raw.bookings AS b
GROUP BY
  b.hotel_id,
  b.status,
  YEAR(b.checkin)
