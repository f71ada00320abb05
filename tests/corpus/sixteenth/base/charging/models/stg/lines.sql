MODEL (
  name stg.lines,
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column booked_on,
    batch_size 31
  ),
  partitioned_by (booked_on),
  grain line_id,
  audits (
    UNIQUE_VALUES(columns := (line_id)),
    NOT_NULL(columns := (line_id, session_id, net_amount)),
    credits_are_negative
  )
);

SELECT
  l.line_id,
  l.session_id,
  LOWER(l.kind) AS kind,
  l.net_amount,
  CAST(l.net_amount * (1 + l.vat_rate) AS DECIMAL(12, 4)) AS gross_amount,
  l.currency,
  l.booked_at,
  CAST(l.booked_at AS DATE) AS booked_on
FROM bill.lines AS l
WHERE
  CAST(l.booked_at AS DATE) BETWEEN @start_ds AND @end_ds
