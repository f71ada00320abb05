MODEL (
  name fare.rides,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column tap_date,
    batch_size 14,
    lookback 2
  ),
  partitioned_by (tap_date),
  grain tap_id,
  audits (
    NOT_NULL(columns := (tap_id)),
    UNIQUE_VALUES(columns := (tap_id))
  )
);

SELECT
  t.tap_id,
  t.card_id,
  t.line_id,
  t.tap_date,
  s.zone,
  p.product_name,
  t.amount_cents,
  p.list_cents - t.amount_cents AS discount_cents
FROM fare.taps AS t
LEFT JOIN gate.products AS p
  ON t.product_id = p.product_id AND t.feed_version = p.feed_version
LEFT JOIN fare.stops AS s
  ON t.stop_id = s.stop_id
  AND t.tap_date >= s.valid_from
  AND t.tap_date < COALESCE(s.valid_to, CAST('9999-12-31' AS DATE))
WHERE
  t.tap_date BETWEEN @start_ds AND @end_ds AND t.status = 'accepted'
