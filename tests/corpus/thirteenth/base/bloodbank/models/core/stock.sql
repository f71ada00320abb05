MODEL (
  name core.stock,
  kind INCREMENTAL_BY_PARTITION,
  partitioned_by (location),
  grain (location, component),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (location, component))
  )
);

SELECT
  r.component,
  COUNT(*) AS units,
  MIN(r.expires_on) AS first_expiry,
  r.location
FROM core.releasable AS r
GROUP BY
  r.component,
  r.location
