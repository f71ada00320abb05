MODEL (
  name claims.claim_versions,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_on,
    lookback 1,
    forward_only TRUE,
    on_destructive_change ERROR
  ),
  partitioned_by (booked_on),
  description 'Every version of a claim, by the day on which it was booked.',
  grain (claim_no, version),
  audits (
    NOT_NULL(columns := (claim_no, version)),
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (claim_no, version)),
    APPROVED_NOT_ABOVE_BILLED
  )
);

SELECT
  c.claim_no,
  c.version,
  c.member_no,
  c.provider_no,
  UPPER(REPLACE(c.diagnosis, '.', '')) AS diagnosis,
  c.status,
  CAST(c.billed AS DECIMAL(12, 2)) AS billed,
  CAST(c.approved AS DECIMAL(12, 2)) AS approved,
  CAST(COALESCE(c.copay, 0) AS DECIMAL(12, 2)) AS copay,
  c.service_date,
  c.decided_at,
  CAST(c.booked_at AS DATE) AS booked_on
FROM core.claims AS c
WHERE
  CAST(c.booked_at AS DATE) BETWEEN @start_date AND @end_date
