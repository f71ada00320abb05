MODEL (
  name core.tariff_history,
  kind SCD_TYPE_2_BY_COLUMN (
    unique_key (hotel_id, room, season),
    columns (price, currency)
  ),
  grain (hotel_id, room, season, valid_from),
  audits (
    NOT_NULL(columns := (hotel_id, room, season))
  )
);

SELECT
  CAST(t.hotel_id AS STRING) AS hotel_id,
  CAST(t.room AS STRING) AS room,
  CAST(t.season AS STRING) AS season,
  CAST(t.price AS DECIMAL(10, 2)) AS price,
  CAST(t.currency AS STRING) AS currency
FROM raw.tariffs AS t
