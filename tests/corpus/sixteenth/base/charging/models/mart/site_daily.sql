MODEL (
  name mart.site_daily,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column started_on,
    lookback 7,
    batch_size 60
  ),
  partitioned_by (started_on),
  grain (site_code, currency, started_on),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (site_code, currency, started_on)),
    NOT_NULL(columns := (started_on, sessions))
  )
);

SELECT
  f.site_code,
  a.currency,
  COUNT(*) AS sessions,
  COUNT(DISTINCT f.driver_id) AS drivers,
  SUM(f.kwh) AS kwh,
  SUM(COALESCE(a.net_amount, 0)) AS net_amount,
  f.started_on
FROM core.session_facts AS f
LEFT JOIN core.session_amounts AS a
  ON f.session_id = a.session_id
WHERE
  f.started_on BETWEEN @start_ds AND @end_ds
GROUP BY
  f.site_code,
  a.currency,
  f.started_on
