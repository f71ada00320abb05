MODEL (
  name core.ticket_revenue,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column sold_on,
    batch_size 31,
    lookback 3
  ),
  partitioned_by (sold_on),
  grain ticket_id,
  audits (
    UNIQUE_VALUES(columns := (ticket_id)),
    NOT_NULL(columns := (ticket_id, revenue_eur)),
    ACCEPTED_RANGE(column := revenue_eur, min_v := 0)
  )
);

SELECT
  t.ticket_id,
  t.booking_id,
  t.sailing_id,
  t.fare_class,
  f.refundable,
  t.kind,
  t.currency,
  t.price,
  @to_eur(t.price, t.currency, x.rate_to_eur) AS revenue_eur,
  t.lane_metres,
  t.sold_on
FROM stg.tickets AS t
INNER JOIN ref.fares AS f
  ON t.fare_class = f.fare_class
LEFT JOIN stg.fx_daily AS x
  ON t.currency = x.currency AND t.sold_on = x.rate_date
WHERE
  t.sold_on BETWEEN @start_ds AND @end_ds AND t.fare_class <> 'CREW'
