MODEL (
  name stg.lab_results,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column measured_on,
    lookback 2,
    batch_size 90
  ),
  partitioned_by (measured_on),
  grain (sample_id, test_code),
  audits (
    UNIQUE_COMBINATION_OF_COLUMNS(columns := (sample_id, test_code)),
    NOT_NULL(columns := (sample_id, test_code, pet_id))
  )
);

SELECT
  l.sample_id,
  l.test_code,
  MAX_BY(l.value, l.version) AS value,
  MAX_BY(l.unit, l.version) AS unit,
  l.pet_id,
  CAST(MIN(l.measured_at) AS DATE) AS measured_on
FROM lab.results AS l
WHERE
  CAST(l.measured_at AS DATE) BETWEEN @start_ds AND @end_ds
GROUP BY
  l.sample_id,
  l.test_code,
  l.pet_id
