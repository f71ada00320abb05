MODEL (
  name stg.payments,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column paid_on,
    batch_size 31
  ),
  partitioned_by (paid_on),
  grain payment_id,
  audits (
    UNIQUE_VALUES(columns := (payment_id)),
    NOT_NULL(columns := (payment_id, booking_id, amount))
  )
);

SELECT
  p.payment_id,
  p.booking_id,
  p.direction,
  CAST(p.amount_cents / 100 AS DECIMAL(12, 2)) AS amount,
  p.currency,
  p.paid_at,
  CAST(p.paid_at AS DATE) AS paid_on
FROM web.payments AS p
WHERE
  CAST(p.paid_at AS DATE) BETWEEN @start_ds AND @end_ds
