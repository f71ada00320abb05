MODEL (
  name gl.postings,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_on,
    batch_size 31,
    lookback 5,
    forward_only TRUE,
    on_destructive_change ERROR
  ),
  partitioned_by (booked_on),
  grain posting_id,
  audits (
    NOT_NULL(columns := (posting_id, account_no, booked_on)),
    UNIQUE_VALUES(columns := (posting_id))
  )
);

SELECT
  CAST(p.posting_id AS BIGINT) AS posting_id,
  CAST(p.account_no AS STRING) AS account_no,
  CAST(p.contra_account AS STRING) AS contra_account,
  CAST(p.amount AS DECIMAL(18, 2)) AS amount,
  UPPER(p.currency) AS currency,
  CAST(p.booked_on AS DATE) AS booked_on,
  CAST(p.value_date AS DATE) AS value_date
FROM core.postings AS p
WHERE
  p.booked_on BETWEEN @start_ds AND @end_ds
