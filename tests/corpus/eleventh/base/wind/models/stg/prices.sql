MODEL (
  name stg.prices,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 1
  ),
  cron '@daily',
  partitioned_by (day),
  grain (area, hour),
  audits (
    NOT_NULL(columns := (area, hour)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (area, hour))
  )
);

SELECT
  p.area,
  p.hour,
  MAX_BY(p.price, p.published_at) AS price_mwh,
  CAST(p.hour AS DATE) AS day
FROM market.prices AS p
WHERE
  CAST(p.hour AS DATE) BETWEEN @start_ds AND @end_ds AND p.currency = 'EUR'
GROUP BY
  p.area,
  p.hour
