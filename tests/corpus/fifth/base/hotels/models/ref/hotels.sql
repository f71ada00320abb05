MODEL (
  name ref.hotels,
  kind SEED (
    path '../../seeds/hotels.csv'
  ),
  columns (
    hotel_id STRING,
    city STRING,
    country STRING,
    zip STRING
  ),
  grain hotel_id,
  audits (
    NOT_NULL(columns := (hotel_id)),
    UNIQUE_VALUES(columns := (hotel_id))
  )
);
