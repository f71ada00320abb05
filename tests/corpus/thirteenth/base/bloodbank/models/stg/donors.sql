MODEL (
  name stg.donors,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key donor_id
  ),
  table_format iceberg,
  grain donor_id,
  audits (
    UNIQUE_VALUES(columns := (donor_id)),
    NOT_NULL(columns := (donor_id))
  ),
  physical_properties (
    'format-version' = '2',
    'write.merge.mode' = 'merge-on-read'
  )
);

SELECT
  CAST(d.donor_id AS BIGINT) AS donor_id,
  SHA2(d.national_id, 256) AS national_id_hash,
  d.blood_group,
  YEAR(d.birth_date) AS birth_year,
  COALESCE(d.consent, FALSE) AS consent,
  CAST(d.updated_at AS TIMESTAMP) AS updated_at
FROM lis.donors AS d
WHERE
  d.updated_at BETWEEN @start_ts AND @end_ts
