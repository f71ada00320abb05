MODEL (
  name gl.postings_home,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_on,
    batch_size 31,
    lookback 5
  ),
  description 'Postings in the reporting currency, at the rate of the value date.',
  partitioned_by (booked_on),
  grain posting_id
);

SELECT
  p.posting_id,
  p.account_no,
  p.booked_on,
  p.currency,
  p.amount,
  CASE
    WHEN p.currency = @VAR('reporting_currency')
    THEN p.amount
    ELSE CAST(p.amount * fx.rate AS DECIMAL(18, 2))
  END AS amount_home
FROM gl.postings AS p
LEFT JOIN core.fx AS fx
  ON p.currency = fx.currency AND p.value_date = fx.valid_on
WHERE
  p.booked_on BETWEEN @start_ds AND @end_ds
