MODEL (
  name stg.results,
  kind INCREMENTAL_BY_UNIQUE_KEY (
    unique_key (donation_id, assay),
    when_matched (
      WHEN MATCHED AND source.version >= target.version THEN UPDATE SET
        target.outcome = source.outcome,
        target.version = source.version,
        target.measured_at = source.measured_at
    )
  ),
  table_format iceberg,
  grain (donation_id, assay),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (donation_id, assay)),
    NOT_NULL(columns := (donation_id, assay, outcome)),
    ACCEPTED_VALUES(column := outcome, is_in := ('NEG', 'POS', 'IND'))
  )
);

SELECT
  CAST(r.donation_id AS BIGINT) AS donation_id,
  UPPER(r.assay) AS assay,
  CAST(r.outcome AS STRING) AS outcome,
  CAST(r.version AS INT) AS version,
  CAST(r.measured_at AS TIMESTAMP) AS measured_at
FROM lis.results AS r
WHERE
  r.loaded_at BETWEEN @start_ts AND @end_ts
QUALIFY
  ROW_NUMBER() OVER (PARTITION BY r.donation_id, UPPER(r.assay) ORDER BY r.version DESC) = 1
