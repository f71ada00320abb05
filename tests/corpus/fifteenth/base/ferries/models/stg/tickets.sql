MODEL (
  name stg.tickets,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column sold_on,
    batch_size 31,
    lookback 3
  ),
  partitioned_by (sold_on),
  grain ticket_id,
  audits (
    UNIQUE_VALUES(columns := (ticket_id)),
    NOT_NULL(columns := (ticket_id, booking_id, sailing_id, sold_on)),
    price_not_negative
  )
);

SELECT
  t.ticket_id,
  t.booking_id,
  t.sailing_id,
  UPPER(t.fare_class) AS fare_class,
  t.kind,
  t.price,
  t.currency,
  COALESCE(t.lane_metres, 0) AS lane_metres,
  t.sold_at,
  CAST(t.sold_at AS DATE) AS sold_on
FROM web.tickets AS t
WHERE
  CAST(t.sold_at AS DATE) BETWEEN @start_ds AND @end_ds
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY t.ticket_id ORDER BY t.loaded_at DESC) = 1
