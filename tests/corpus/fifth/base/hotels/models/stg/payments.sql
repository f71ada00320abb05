MODEL (
  name stg.payments,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key payment_id,
    lookback 3
  ),
  grain payment_id,
  audits (
    NOT_NULL(columns := (payment_id)),
    UNIQUE_VALUES(columns := (payment_id))
  )
);

SELECT
  CAST(p.payment_id AS BIGINT) AS payment_id,
  CAST(p.booking_id AS BIGINT) AS booking_id,
  CAST(p.paid_at AS DATE) AS paid_date,
  CAST(p.amount AS DECIMAL(10, 2)) AS amount,
  CAST(p.method AS STRING) AS method
FROM raw.payments AS p
WHERE
  CAST(p.paid_at AS DATE) BETWEEN @start_date AND @end_date
