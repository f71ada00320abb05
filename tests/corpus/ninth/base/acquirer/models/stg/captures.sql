MODEL (
  name stg.captures,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column captured_on,
    lookback 3,
    batch_size 14
  ),
  partitioned_by captured_on,
  grain capture_id,
  references (merchant_id, auth_id),
  physical_properties (write.format.default = 'parquet', write.distribution-mode = 'hash'),
  column_descriptions (
    amount = 'In major units of the currency, never negative'
  ),
  audits (
    not_null(columns := (capture_id, captured_on, amount)),
    unique_values(columns := (capture_id)),
    amount_in_range(most := 1000000)
  )
);

SELECT
  c.capture_id,
  c.auth_id,
  c.merchant_id,
  c.terminal_id,
  LOWER(c.scheme) AS scheme,
  CAST(c.amount / POWER(10, u.minor_units) AS DECIMAL(18, 3)) AS amount,
  c.currency,
  c.kind,
  GET_JSON_OBJECT(c.payload, '$.entry_mode') AS entry_mode,
  c.captured_at,
  CAST(c.captured_at AS DATE) AS captured_on
FROM raw.captures AS c
JOIN ref.currencies AS u ON u.code = c.currency
WHERE c.captured_at >= @start_ts
  AND c.captured_at <= @end_ts
  AND c.capture_id IS NOT NULL
QUALIFY ROW_NUMBER() OVER (PARTITION BY c.capture_id ORDER BY c.loaded_at DESC, c.captured_at DESC) = 1
