MODEL (
  name mart.route_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column sold_on,
    batch_size 31,
    lookback 3
  ),
  partitioned_by (sold_on),
  grain (route_code, sold_on),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (route_code, sold_on)),
    NOT_NULL(columns := (route_code, sold_on))
  )
);

SELECT
  s.route_code,
  COUNT(*) AS tickets,
  COUNT(DISTINCT r.booking_id) AS bookings,
  SUM(r.revenue_eur) AS revenue_eur,
  AVG(CASE WHEN r.kind = 'passenger' THEN r.revenue_eur END) AS avg_fare_eur,
  r.sold_on
FROM core.ticket_revenue AS r
INNER JOIN stg.sailings AS s
  ON r.sailing_id = s.sailing_id
WHERE
  r.sold_on BETWEEN @start_ds AND @end_ds
GROUP BY
  s.route_code,
  r.sold_on
