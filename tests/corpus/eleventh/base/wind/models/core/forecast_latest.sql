MODEL (
  name core.forecast_latest,
  kind FULL,
  grain (site, valid_at),
  audits (
    NOT_NULL(columns := (site, valid_at)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (site, valid_at))
  )
);

WITH usable AS (
  SELECT
    f.site,
    f.issued_at,
    f.valid_at,
    f.wind_ms * LN(90 / 0.03) / LN(f.height_m / 0.03) AS wind_ms
  FROM met.forecasts AS f
  WHERE
    f.issued_at <= f.valid_at - INTERVAL '12' HOUR
)
SELECT
  u.site,
  u.valid_at,
  MAX(u.issued_at) AS issued_at,
  MAX_BY(u.wind_ms, STRUCT(u.issued_at, u.wind_ms)) AS wind_ms
FROM usable AS u
GROUP BY
  u.site,
  u.valid_at
