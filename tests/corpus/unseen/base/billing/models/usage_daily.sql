MODEL (
  name bill.usage_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column usage_date,
    batch_size 7,
    lookback 2
  ),
  partitioned_by (usage_date),
  grain (account_id, metric, usage_date),
  audits (
    NOT_NULL(columns := (account_id, metric, usage_date)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (account_id, metric, usage_date))
  )
);

WITH once AS (
  SELECT DISTINCT
    u.event_id,
    u.account_id,
    u.metric,
    u.units,
    CAST(u.occurred_at AS DATE) AS usage_date
  FROM app.usage_events AS u
  WHERE
    CAST(u.occurred_at AS DATE) BETWEEN @start_ds AND @end_ds
)
SELECT
  once.account_id,
  once.metric,
  once.usage_date,
  COUNT(*) AS events,
  SUM(once.units) AS units
FROM once
GROUP BY
  once.account_id,
  once.metric,
  once.usage_date
