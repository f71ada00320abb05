MODEL (
  name mart.site_days,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column day,
    lookback 2
  ),
  partitioned_by (day),
  grain (day, site_code),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (day, site_code)),
    NOT_NULL(columns := (day, site_code))
  )
);

SELECT
  d.donated_on AS day,
  d.site_code,
  s.region,
  COUNT(*) AS donations,
  SUM(d.volume_ml) AS volume_ml,
  AVG(d.volume_ml) AS avg_volume_ml
FROM stg.donations AS d
JOIN ref.sites AS s
  ON s.site_code = d.site_code
WHERE
  d.donated_on BETWEEN @start_ds AND @end_ds
GROUP BY
  d.donated_on,
  d.site_code,
  s.region
