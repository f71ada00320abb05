MODEL (
  name core.daily_snapshot,
  kind INCREMENTAL_UNMANAGED (
    insert_overwrite TRUE
  ),
  partitioned_by taken_on,
  grain (taken_on, hotel_id)
);

SELECT
  CAST(@end_ds AS DATE) AS taken_on,
  b.hotel_id,
  COUNT(*) AS open_bookings
FROM stg.bookings AS b
WHERE
  b.status = 'open'
GROUP BY
  b.hotel_id
