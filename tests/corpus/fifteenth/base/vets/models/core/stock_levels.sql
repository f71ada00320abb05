MODEL (
  name core.stock_levels,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (clinic_id, item_code),
    when_matched (
      WHEN MATCHED THEN UPDATE SET
        target.quantity = target.quantity + source.quantity,
        target.last_moved_at = GREATEST(target.last_moved_at, source.last_moved_at)
    ),
    disable_restatement TRUE,
    batch_size 1
  ),
  description 'Running stock: each day adds its movements to the level of the day before.',
  grain (clinic_id, item_code),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (clinic_id, item_code)),
    NOT_NULL(columns := (clinic_id, item_code))
  )
);

SELECT
  m.clinic_id,
  m.item_code,
  SUM(m.quantity) AS quantity,
  MAX(m.moved_at) AS last_moved_at
FROM stock.movements AS m
WHERE
  m.moved_at BETWEEN @start_ts AND @end_ts
GROUP BY
  m.clinic_id,
  m.item_code
