MODEL (
  name fare.taps,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column tap_date,
    batch_size 14,
    lookback 2
  ),
  description 'One row per tap, the last message wins.',
  partitioned_by (tap_date),
  grain tap_id,
  audits (
    NOT_NULL(columns := (tap_id, tap_date)),
    UNIQUE_VALUES(columns := (tap_id))
  )
);

WITH received AS (
  SELECT
    t.tap_id,
    t.card_id,
    t.stop_id,
    t.line_id,
    t.product_id,
    t.feed_version,
    t.amount_cents,
    t.status,
    t.tapped_at,
    ROW_NUMBER() OVER (PARTITION BY t.tap_id ORDER BY t.received_at DESC, t.file_line DESC) AS rn
  FROM gate.taps AS t
  WHERE
    CAST(t.tapped_at AS DATE) BETWEEN @start_ds AND @end_ds
)
SELECT
  CAST(tap_id AS BIGINT) AS tap_id,
  CAST(card_id AS STRING) AS card_id,
  CAST(stop_id AS STRING) AS stop_id,
  CAST(line_id AS STRING) AS line_id,
  CAST(product_id AS STRING) AS product_id,
  CAST(feed_version AS INT) AS feed_version,
  CAST(amount_cents AS INT) AS amount_cents,
  CAST(status AS STRING) AS status,
  CAST(tapped_at AS TIMESTAMP) AS tapped_at,
  CAST(tapped_at AS DATE) AS tap_date
FROM received
WHERE
  rn = 1
