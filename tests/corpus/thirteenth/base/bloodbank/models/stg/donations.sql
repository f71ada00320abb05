MODEL (
  name stg.donations,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column donated_on,
    lookback 2,
    batch_size 30
  ),
  partitioned_by (donated_on),
  grain donation_id,
  audits (
    UNIQUE_VALUES(columns := (donation_id)),
    NOT_NULL(columns := (donation_id, donor_id)),
    positive_volume
  ),
  signals (
    lab_closed(hours := 4)
  )
);

SELECT
  CAST(d.donation_id AS BIGINT) AS donation_id,
  CAST(d.donor_id AS BIGINT) AS donor_id,
  UPPER(TRIM(d.site_code)) AS site_code,
  CAST(d.donated_at AS TIMESTAMP) AS donated_at,
  CAST(d.donated_at AS DATE) AS donated_on,
  CAST(d.volume_ml AS INT) AS volume_ml,
  d.status
FROM lis.donations AS d
WHERE
  d.donated_at >= @start_ts AND d.donated_at < @end_ts
  AND d.status <> 'ABORTED'
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY d.donation_id ORDER BY d.loaded_at DESC) = 1
